// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "apps/urma_feed/messages.h"
#include "urma/urma.hpp"

namespace urma::apps::feed {

// One Jetty of one incarnation of a process, and the number of the device through which it sends.
using Origin = std::tuple<size_t, uint32_t, uint32_t, JettyId>;

// The feeds of producers of payloads. A feed is one run of a producer, also if the producer
// connects several times. Its messages may overtake one another on their way; they are delivered in
// the order of their numbers.
class Streams {
 public:
  struct Sums {
    uint64_t feeds = 0;
    uint64_t messages = 0;
    uint64_t bytes = 0;
    uint64_t missing = 0;
    uint64_t repeated = 0;  // dropped
    uint64_t before = 0;    // messages that earlier consumers have acknowledged
    uint64_t going_on = 0;  // feeds that have not ended
    uint64_t dropped = 0;   // messages that were not understood
    std::string last{};     // why the last one of these was not
  };

  struct Delivered {
    uint32_t topic = 0;
    Stamp posted{};
  };

  // `print`: payloads go to standard output.
  explicit Streams(bool print) : print_(print) {}

  // A text that has arrived, without an immediate.
  void hello(const Origin& from, Device& device, std::string_view text);
  // A message with a payload. It is kept until it is delivered.
  void payload(const Origin& from, uint64_t immediate, std::span<const std::byte> text);
  // Delivers the next message of this producer, if it has arrived: with `print`, `flush` will write
  // its payload. It will be acknowledged.
  std::optional<Delivered> deliver(const Origin& from);
  // The producer has sent this many messages. Returns false if it sends no payloads.
  bool ended(const Origin& from, uint64_t total);

  // Writes the payloads that have arrived to standard output, and then acknowledges them through
  // the Jetty of their device. Throws a Failure if they cannot be written: then they are not
  // acknowledged.
  void flush(std::span<Jetty* const> jetties);
  // Sends this text to the producers that have not ended. The library reads it until `completed`
  // was called for each of these works.
  void farewell(std::span<Jetty* const> jetties, std::string_view text);
  // A work of such a Jetty has completed.
  void completed() { --outstanding_; }
  // Returns whether no work is outstanding.
  bool quiet() const { return outstanding_ == 0; }
  // Returns whether all acknowledgements have left.
  bool idle() const { return quiet() && !dirty_; }

  Sums sums() const;
  // Returns whether each message of the feeds that have ended has come.
  bool whole() const;

 private:
  struct Waiting {
    uint32_t topic = 0;
    Stamp posted{};
    std::string bytes{};
  };
  struct Stream {
    Origin from;
    RemoteJetty back;
    uint64_t first = 0;
    uint64_t next = 0;
    bool lines = false;
    bool dirty = false;  // an acknowledgement is due
    uint64_t messages = 0;
    uint64_t bytes = 0;
    uint64_t repeated = 0;
    std::map<uint64_t, Waiting> waiting{};  // by number: messages that were not delivered
    std::optional<uint64_t> total{};

    uint64_t missing() const { return total && *total > next ? *total - next : 0; }
  };

  Stream* find(const Origin& from);
  void drop(std::string why);

  const bool print_;
  std::map<uint64_t, Stream> streams_;  // by the number of the feed
  std::map<Origin, uint64_t> feeds_;    // of each connection
  std::string out_;
  bool dirty_ = false;        // a stream is
  uint64_t outstanding_ = 0;  // works
  uint64_t dropped_ = 0;
  std::string last_;
};

}  // namespace urma::apps::feed
