#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/raw.h"
#include "urma/urma.hpp"

namespace urma::perf {

// The fastest exchange of messages over the kernel's UDP, without liburma: the loops that `--limit`
// compares with. They spin as the inlined library does, and their receivers read what they receive.

// A non-blocking socket with 4 MiB of buffer where the system allows it.
class RawSocket {
 public:
  // On a port of its own of this address.
  explicit RawSocket(const Eid& address);
  RawSocket(const RawSocket&) = delete;
  ~RawSocket();

  void connect(const Endpoint& to);
  // The largest datagram, up to 8 KiB, that goes there unfragmented. After `connect`.
  size_t datagram_bytes() const { return datagram_bytes_; }
  // Trains of datagrams are received as one.
  void coalesce();
  uint16_t port() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  size_t datagram_bytes_ = 0;
};

// The datagrams of a burst.
struct RawPlan {
  size_t datagram_bytes = 0;
  unsigned datagrams = 1;  // in one call
  bool train = false;      // the call is one GSO send, received by GRO; else sendmmsg, recvmmsg
};
// Datagrams of the messages' size, as far as the path carries them; 64 per call below 1 KiB, else
// as long a train as UDP takes.
RawPlan raw_plan(uint64_t message_bytes, const RawSocket& socket);

// A message of n bytes there, one of m bytes back: one datagram each, or, beyond 65 000 bytes, GSO
// trains of 8 KiB datagrams.
class RawPing {
 public:
  // `rest` is how long each side rests before it sends, so that the other one sleeps. If it is 0,
  // both spin.
  RawPing(RawSocket& socket, std::span<const std::byte> out, std::span<std::byte> in, bool read,
          int64_t rest)
      : socket_(socket), out_(out), in_(in), read_(read), rest_(rest) {}

  // Whole round trips until the time is reached; records each. What is lost is sent again.
  void run(int64_t until, Histogram& round_trips);

 private:
  RawSocket& socket_;
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  bool read_;
  int64_t rest_;
};

class RawPong {
 public:
  RawPong(RawSocket& socket, std::span<std::byte> in, std::span<const std::byte> out, bool read,
          int64_t rest)
      : socket_(socket), in_(in), out_(out), read_(read), rest_(rest) {}

  void run(int64_t until);

 private:
  RawSocket& socket_;
  std::span<std::byte> in_;
  std::span<const std::byte> out_;
  bool read_;
  int64_t rest_;
  size_t got_ = 0;  // of a message
  int64_t heard_ = 0;
};

// Bursts as fast as the kernel takes them, from all over the source.
class RawSender {
 public:
  RawSender(RawSocket& socket, const RawPlan& plan, std::span<const std::byte> source);

  void run(int64_t until);

 private:
  std::span<const std::byte> next();

  RawSocket& socket_;
  RawPlan plan_;
  std::span<const std::byte> source_;
  size_t at_ = 0;
};

// Receives bursts all over the landing place.
class RawReceiver {
 public:
  RawReceiver(RawSocket& socket, const RawPlan& plan, std::span<std::byte> landing, bool read);

  void run(int64_t until);
  RawTally tally;

 private:
  size_t receive_train();
  size_t receive_burst();

  RawSocket& socket_;
  RawPlan plan_;
  std::span<std::byte> landing_;
  bool read_;
  size_t at_ = 0;
};

}  // namespace urma::perf
