// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "drivers/udp/batch_io.h"

namespace urma::drivers::udp {

// Passes batches to the kernel by io_uring. One io_uring_enter executes the messages of a batch as
// a chain, in which the kernel cancels those behind a failed one, as sendmmsg stops there; or it
// executes one multishot receive, which fills buffers of a provided ring until the socket is empty.
// Every request has MSG_DONTWAIT and so has ended when the call returns. A request that waits
// belongs to the thread that made it, which the kernel interrupts when a datagram arrives; but any
// thread of an application may run the port, and its epoll_wait would then return EINTR. The kernel
// does this once to each thread that has used the ring when the ring is closed.
class UringIo : public BatchIo {
 public:
  // Room for what the kernel writes in front of the data of each received message.
  static constexpr uint32_t prefix = 128;

  // Returns whether the kernel has refused the ring itself since it was opened, as a filter of
  // system calls does that a program installs later. Then `send` and `receive` fail for ever.
  virtual bool refused() const = 0;
  // Takes the free buffers back that the ring has.
  virtual void leave(Buffers& buffers) = 0;
};

// A ring that was made, or the reason why the kernel makes none for this process.
struct OpenedUring {
  std::unique_ptr<UringIo> io;
  std::string why_not;
};
// Loads liburing and makes a ring. `socket` must be empty: a receive is tried there. Errors:
// unsupported (liburma was built without liburing, or it is not installed or too old).
Result<OpenedUring> open_uring(int socket);

}  // namespace urma::drivers::udp
