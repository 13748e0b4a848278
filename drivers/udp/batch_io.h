#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/region.h"
#include "drivers/udp/udp_socket.h"

namespace urma::drivers::udp {

// The buffers that the kernel fills, in one region, and which of them are free. The port owns it.
class Buffers {
 public:
  static constexpr uint32_t count = 128;
  // The most bytes that the kernel delivers at once, to a socket that coalesces datagrams.
  static constexpr uint32_t data_bytes = 65536;

  // Each buffer has room for `prefix` bytes in front of the data.
  explicit Buffers(uint32_t prefix)
      : bytes_each_(prefix + data_bytes), storage_(size_t{count} * bytes_each_) {
    for (uint32_t i = count; i-- > 0;) give_back(i);
  }

  uint32_t free() const { return free_count_; }
  uint32_t bytes_each() const { return bytes_each_; }
  std::byte* at(uint32_t buffer) const { return storage_.data() + size_t{buffer} * bytes_each_; }
  // Returns the buffer that `take` would take after `skipped` others.
  uint32_t next(uint32_t skipped) const { return free_[free_count_ - 1 - skipped]; }
  uint32_t take() { return free_[--free_count_]; }
  void give_back(uint32_t buffer) { free_[free_count_++] = buffer; }
  bool use_huge_pages() const { return storage_.use_huge_pages(); }

 private:
  uint32_t bytes_each_;
  Region storage_;
  std::array<uint32_t, count> free_;
  uint32_t free_count_ = 0;
};

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
