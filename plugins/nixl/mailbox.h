// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/nixl/nixl.h"
#include "plugins/nixl/note.h"
#include "urma/urma.hpp"

namespace urma::nixl {

// The Jetty at which notifications of other agents arrive, and those that the application has not
// taken. Any thread may call it.
class Mailbox {
 public:
  static Result<std::unique_ptr<Mailbox>> make(Device& device);

  std::string descriptor() const { return jetty_.descriptor(); }
  RemoteJetty address() const { return jetty_.local(); }
  int fd() const { return fd_; }

  // Takes in what has arrived, and arms the descriptor.
  void arm();
  // Takes in what has arrived, and moves all notifications to `out`.
  void take(notif_list_t& out);
  // Forgets what a peer has begun and cannot end any longer.
  void forget(PeerId peer);

 private:
  Mailbox(Jetty jetty, int fd) : jetty_(std::move(jetty)), fd_(fd) {}
  bool post(size_t buffer);
  void take_in(const Completion& arrival);

  std::mutex mutex_;
  Jetty jetty_;
  const int fd_;
  std::vector<std::byte> buffers_;
  NoteAssembly assembly_;
  notif_list_t arrived_;
};

}  // namespace urma::nixl
