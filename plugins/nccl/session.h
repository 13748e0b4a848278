// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "plugins/nccl/copier.h"
#include "plugins/nccl/registrations.h"
#include "plugins/nccl/settings.h"
#include "urma/urma.hpp"

namespace urma::nccl {

// The device that all communicators of this process share, and the memory that is registered on it.
// It is opened for the first SessionRef and closed with the last one.
class Session {
 public:
  Session(Settings chosen, Device opened);

  const Settings settings;
  Device device;
  Registrations memory;
  Copier copier;

  // Returns whether this process opened the device, and not its parent.
  bool is_own() const;
  // Returns whether the device is a window, whose memory all its processes map.
  bool is_window() const { return window_; }
  // Returns the bit rate that NCCL is told, in Mb/s.
  int speed_mbps() const;
  // Returns the latency that NCCL is told, in us.
  float latency_us() const;
  // Returns a number that is the same in all processes of this host.
  static uint64_t host_number();

 private:
  const bool window_;
  const pid_t process_;
};

// One use of the session. Move only. Any thread makes and destroys them.
class SessionRef {
 public:
  // Opens the device if it is not open. Errors: those of urma::open and read_settings.
  static Result<SessionRef> acquire();
  SessionRef(SessionRef&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  SessionRef& operator=(SessionRef&&) = delete;
  // Closes the device with the last use: its threads have ended when this returns. In a child of
  // fork, which has neither the device nor its threads, it does nothing.
  ~SessionRef();

  Session* operator->() const { return session_; }
  Session& operator*() const { return *session_; }

 private:
  explicit SessionRef(Session& session) : session_(&session) {}
  Session* session_;
};

}  // namespace urma::nccl
