// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "drivers/remote_access.h"
#include "drivers/verbs/adapter.h"

namespace urma::drivers::verbs {

// One end of a pair: a reliable, connected queue pair, which only its two ends use. Its functions
// are system calls of up to milliseconds, except for `post`.
class ReliableQueue {
 public:
  static constexpr uint32_t depth = 64;  // works that it has room for

  // `opens`: the other end may access memory of this process. Returns nothing if the adapter gives
  // no queue pair.
  static std::optional<ReliableQueue> make(const Adapter& adapter, ibv_cq& completions, bool opens);

  // Returns whether this describes an end that this version can connect to, of an adapter at this
  // address.
  static bool is_end_at(const RemoteAccess::Description& end, const Eid& address);
  // Returns a description with which the other end connects.
  RemoteAccess::Description describe() const;
  // Connects it to the end that this describes, for which `is_end_at` returns true. Returns false
  // if the adapter refuses.
  bool connect(const RemoteAccess::Description& other);

  // Posts a work. Returns 0 or an errno.
  int post(ibv_send_wr& work) const {
    ibv_send_wr* refused = nullptr;
    return ibv_post_send(pair_.get(), &work, &refused);
  }

 private:
  ReliableQueue(const Adapter& adapter, QueuePair pair);
  bool start(bool opens);

  const Adapter* adapter_;
  QueuePair pair_;
  uint32_t first_number_;  // of its packets
};

}  // namespace urma::drivers::verbs
