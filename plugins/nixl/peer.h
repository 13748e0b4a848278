// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/nixl/nixl.h"
#include "plugins/nixl/transfer.h"
#include "urma/urma.hpp"

namespace urma::nixl {

// A remote agent: the Jetty from which works are posted to it, and those that wait for a berth.
// Each agent has a Jetty of its own, so that one that has died delays no other. Any thread may call
// it. Works end only while a thread calls it: that of the application, which polls its transfers.
class Peer {
 public:
  Peer(Jetty jetty, const RemoteJetty& mailbox) : jetty_(std::move(jetty)), mailbox_(mailbox) {}
  // Ends all works.
  ~Peer();

  // Begins a transfer of this peer, which must not be active, and returns its status.
  nixl_status_t post(Transfer& transfer, std::vector<std::vector<std::byte>> messages);
  // Returns the status of a transfer, which may end with this call. Without its device it never
  // ends, and fails.
  nixl_status_t check(const Transfer& transfer);
  // Keeps a transfer until its works have ended. Those that were not posted never are.
  void release(std::unique_ptr<Transfer> transfer);
  // Sends a notification that belongs to no transfer.
  nixl_status_t notify(std::unique_ptr<Transfer> note,
                       std::vector<std::vector<std::byte>> messages);
  // Returns whether there are works for which no application polls: those of released transfers and
  // of notifications that belong to none. Then `progress` is to be called.
  bool owns_works();
  void progress();
  // Ends all works and lets go of what it keeps.
  void close();

 private:
  void run();
  void collect();
  void end_one(Transfer& transfer, Status status);
  void post_waiting();
  bool post_some(Transfer& transfer);

  std::mutex mutex_;
  Jetty jetty_;
  const RemoteJetty mailbox_;
  std::deque<Transfer*> waiting_;
  std::unordered_map<Transfer*, std::unique_ptr<Transfer>> kept_;
  std::vector<Work> works_;
  Status broken_ = Status::ok;   // why no work can be posted
  bool device_is_gone_ = false;  // closed, or of the parent process: its works never end
};

}  // namespace urma::nixl
