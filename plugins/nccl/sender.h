// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "plugins/nccl/board.h"
#include "plugins/nccl/greeting.h"
#include "plugins/nccl/link.h"

namespace urma::nccl {

class Sender;
class Receiver;

// One send, or one receive of several buffers: NCCL has a pointer to it.
struct Request {
  Sender* sender = nullptr;      // of a send
  Receiver* receiver = nullptr;  // of a receive
  uint32_t index = 0;            // among those of its sender or receiver
  bool used = false;             // from isend or irecv until `test` says that it is done
  bool done = false;             // send: its data was written, and its buffer is NCCL's again
  int count = 0;                 // receive: its buffers
  uint64_t bytes = 0;            // send: its data
};

// A sendComm: writes data into the buffers that the receiver at its peer has posted. One thread at
// a time uses it.
class Sender {
 public:
  // Makes a sender that greets the listener. Errors: those of read_handle, of Device::import, of
  // Device::jetty and of Device::allocate.
  static Result<std::unique_ptr<Sender>> make(SessionRef session, const void* handle);

  // Continues to connect. Returns whether the receiver has answered, or that the connection failed.
  // Never blocks.
  Result<bool> connect();

  // Starts to send. `*request` is null if the receiver has posted no buffer with this tag yet, or
  // too many sends are outstanding. Never blocks.
  Code send(const void* data, size_t bytes, int tag, Request** request);
  // Sets *done, and frees the request if it is done.
  Code test(Request& request, int* done, int* bytes);

 private:
  // A buffer that the receiver has posted and no send has taken.
  struct Found {
    const ReceiveBuffer* buffer = nullptr;
    uint32_t slot = 0;
    uint32_t index = 0;  // in the slot
  };
  // The sends that may be outstanding: one for each buffer that may be posted.
  static constexpr uint32_t most_sends = slots * most_receives;

  Sender(SessionRef session, Jetty jetty, Segment memory);
  Result<void> greet(const Descriptor& listener);
  void poll();
  void take(const Completion& done);
  void accept(const Completion& arrival);
  Found find(int tag) const;
  void take(const Found& found);
  bool post(const Found& found, std::span<const std::byte> data, uint64_t tag);
  Request* free_request();

  // The Jetty of the link ends its works before the memory that they use is gone, so this is first.
  Segment memory_;
  SenderBoard& board_;
  Greeting out_{};
  Greeting in_{};
  Greeting probe_{};
  std::optional<Error> refused_;  // why the peer cannot be used
  std::array<Request, most_sends> requests_{};
  std::array<uint8_t, slots> taken_{};  // the buffers of each slot that sends have taken
  uint64_t head_ = 0;                   // the oldest receive of which not all buffers are taken
  uint32_t next_request_ = 0;
  bool joined_ = false;
  Link link_;
};

}  // namespace urma::nccl
