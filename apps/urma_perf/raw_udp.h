// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/raw.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {

// The fastest exchange of messages over the kernel's UDP, without liburma: the loops that `--limit`
// compares with. They spin as the inlined library does, and their receivers read what they receive.

// A non-blocking socket with a buffer of 4 MiB, if the system allows that.
class RawSocket {
 public:
  // Binds to a free port of this address.
  explicit RawSocket(const Eid& address);
  RawSocket(const RawSocket&) = delete;
  ~RawSocket();

  void connect(const Endpoint& to);
  // Returns the size of the largest datagram, up to 8 KiB, that reaches the peer unfragmented.
  // Valid after `connect`.
  size_t datagram_bytes() const { return datagram_bytes_; }
  // From now on trains of datagrams are received as one.
  void coalesce();
  uint16_t port() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  size_t datagram_bytes_ = 0;
};

// The datagrams that one call sends.
struct RawPlan {
  size_t datagram_bytes = 0;
  unsigned datagrams = 1;  // in one call
  bool train = false;      // one GSO send, received with GRO; otherwise sendmmsg and recvmmsg
  bool summed = false;     // both ends compute a CRC of each datagram of a train
};
// Plans datagrams of the size of the messages, as far as the path carries them: 64 per call below 1
// KiB, and above that as long a train as UDP allows.
RawPlan raw_plan(uint64_t message_bytes, const RawSocket& socket, bool summed);

// The CRC of each datagram of some trains, computed by the code that computes the ICRC of packets.
// Both ends have the same number if all datagrams arrived.
class RawSum {
 public:
  // Adds the datagrams of this size that lie in `bytes`, of which the last one may be shorter.
  void add(std::span<const std::byte> bytes, size_t datagram_bytes);
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;  // the exclusive or of all CRCs, which no order changes
};

// Sends a message of n bytes and waits for one of m bytes back. Each is one datagram or, above 65
// 000 bytes, GSO trains of 8 KiB datagrams.
class RawPing {
 public:
  // `rest` is the time that each side sleeps before it sends, so that the other one sleeps, too. If
  // it is 0, both spin.
  RawPing(RawSocket& socket, std::span<const std::byte> out, std::span<std::byte> in, bool read,
          int64_t rest)
      : socket_(socket), out_(out), in_(in), read_(read), rest_(rest) {}

  // Makes and records whole round trips until the time is reached. Lost messages are sent again.
  void run(int64_t until, Histogram& round_trips);

 private:
  RawSocket& socket_;
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  bool read_;
  int64_t rest_;
};

// Answers each message of a RawPing.
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
  size_t got_ = 0;  // received bytes of the present message
  int64_t heard_ = 0;
};

// Sends bursts as fast as the kernel accepts them, from all parts of the source.
class RawSender {
 public:
  RawSender(RawSocket& socket, const RawPlan& plan, std::span<const std::byte> source);

  void run(int64_t until);
  uint32_t sum() const { return sum_.value(); }

 private:
  std::span<const std::byte> next();

  RawSocket& socket_;
  RawPlan plan_;
  std::span<const std::byte> source_;
  size_t at_ = 0;
  RawSum sum_;
};

// Receives bursts into all parts of the landing memory.
class RawReceiver {
 public:
  RawReceiver(RawSocket& socket, const RawPlan& plan, std::span<std::byte> landing, bool read);

  void run(int64_t until);
  uint32_t sum() const { return sum_.value(); }
  RawTally tally;

 private:
  size_t receive_train();
  size_t receive_burst();

  RawSocket& socket_;
  RawPlan plan_;
  std::span<std::byte> landing_;
  bool read_;
  size_t at_ = 0;
  RawSum sum_;
};

}  // namespace urma::apps::perf
