// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "drivers/udp/buffers.h"
#include "drivers/udp/udp_socket.h"

namespace urma::drivers::udp {

// A datagram that the kernel has put into a buffer, or several of one size that it has joined.
struct Arrival {
  uint32_t buffer = 0;
  uint32_t offset = 0;  // of the data in the buffer
  uint32_t bytes = 0;
  uint32_t segment = 0;  // the size of each datagram except the last
  Endpoint from = {};
  Ecn ecn = Ecn::not_ect;  // of each datagram
};

// One way to pass batches of messages to the kernel and to take batches from it: by sendmmsg and
// recvmmsg (MmsgIo), or by io_uring. No call blocks, and when one returns, the kernel has
// no request left that names memory of the caller. The port decides what a batch contains, and what
// an error means. Used by one thread at a time.
class BatchIo {
 public:
  static constexpr unsigned most_sent = 64;      // messages in a batch to be sent
  static constexpr unsigned most_received = 16;  // messages in a received batch
  static constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

  virtual ~BatchIo() = default;

  // Sends the messages in their order, at most `most_sent`. Returns how many the kernel has taken
  // from the front; if it has refused the first one, returns -1 and sets errno.
  virtual int send(int socket, std::span<mmsghdr> messages) = 0;

  struct Received {
    unsigned count = 0;
    int why = 0;  // an errno if the kernel refused a further message; EAGAIN: there was none
  };
  // Receives at most as many messages as `out`, which has room for `most_received`, into free
  // buffers, and takes those. Receives nothing if no buffer is free.
  virtual Received receive(int socket, Buffers& buffers, std::span<Arrival> out) = 0;
};

}  // namespace urma::drivers::udp
