// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "drivers/sim/network.h"
#include "tests/drivers/window_file.h"
#include "tests/sim/oracle.h"
#include "tests/sim/world_options.h"
#include "urma/urma.hpp"

namespace urma::test {

// A world made from one seed: the real engines on simulated wires under virtual time, applications
// that do random things, and an oracle that knows which outcomes are allowed. A wrong outcome
// throws a Violation.
class World {
 public:
  World(uint64_t seed, const WorldOptions& options);
  ~World();

  // Runs to the end: first with failures, then without, until every work has ended.
  void run();

  uint64_t trace_hash() const { return network_->trace_hash(); }
  Time now() const { return network_->now(); }
  uint64_t completed() const { return completed_; }
  uint64_t unknown() const { return unknown_; }
  const drivers::sim::Network::Counters& counters() const { return network_->counters(); }

 private:
  static constexpr size_t memory_bytes = 4 << 20;
  static constexpr size_t message_bytes = 64 * 1024;
  static constexpr std::byte scribble{0x5a};
  static constexpr size_t lent_bytes = 256 * 1024;
  static constexpr std::byte lent_byte{0x3c};

  using Buffers = std::vector<std::vector<std::byte>>;  // of receives, by tag
  struct HostJetty {
    std::optional<Jetty> jetty;
    Buffers receive_buffers;  // empty if the Jetty takes buffers from its host's Jfr
    uint64_t outstanding = 0;
    bool flushing = false;
  };
  struct Host {
    uint32_t life = 0;
    Eid address;  // on a wire
    bool stopped = false;
    std::vector<bool> left;  // by incarnation: it closed its device, so its memory may be reused
    std::optional<Device> device;
    bool inlined = false;  // polls run its engine, not a thread
    std::shared_ptr<Memory> memory;
    std::optional<Segment> segment;
    std::optional<Jfr> jfr;
    std::optional<JettyGroup> group;  // of all its Jetties, if messages go to groups
    Buffers receive_buffers;
    // Work i notifies word i with its number. The process that sees the value sets the word to 0.
    std::vector<uint64_t> words;
    std::optional<Segment> word_segment;
    uint64_t own_word = 0;  // unless the counter lies in the window
    uint64_t* counted = nullptr;
    std::optional<Segment> counter_segment;
    std::shared_ptr<Counter> counter;
    std::vector<std::byte> lent;
    std::optional<Segment> lent_segment;
    std::string lent_descriptor;         // valid even after the memory was revoked
    std::vector<uint64_t> not_notified;  // works whose notified words have not been seen to change
    std::vector<HostJetty> jetties;
    std::vector<std::string> descriptors;  // of segment and Jetty i
    // The imports of this host, by host and Jetty, each with its incarnation.
    struct Import {
      uint32_t life = UINT32_MAX;
      Imported what;
      RemoteSegment words;
      RemoteSegment counter;
      RemoteSegment lent;
      RemoteJetty group;
    };
    std::vector<std::vector<Import>> imports;

    // Destroys the device and all that uses it. The memory stays.
    void close() {
      jetties.clear();
      group.reset();
      jfr.reset();
      segment.reset();
      word_segment.reset();
      counter_segment.reset();
      lent_segment.reset();
      device.reset();
    }
  };
  struct Healing {
    Time at;
    Endpoint from;
    Endpoint to;
  };
  struct Stop {
    Time until;
    uint32_t host;
    bool long_one;
  };

  std::string device_of(const Host& host);
  std::string window_options(const Host& host) const;
  std::string ring_device_of(const Host& host) const;
  void start(uint32_t host);
  void make_counter(Host& host);
  void make_queues(Host& host);
  void kill(uint32_t host);
  void abandon_works(uint32_t host, bool ended);
  void lend(Host& host);
  void take_back(uint32_t host);
  static bool has_scribble(std::span<const std::byte> packet);
  void restart(uint32_t host);
  void stop(uint32_t host);
  void go_on(uint32_t host);
  Duration pace();
  void act();
  void make_trouble();
  void end_trouble();
  void cut_something();
  void stick();
  void poll(uint32_t host);
  void poll(uint32_t host, HostJetty& jetty);
  void post_something(uint32_t host);
  std::optional<Work> make_work(WorkRecord& record, const Host::Import& target);
  Work make_borrow(WorkRecord& record, const Host::Import& target);
  Work make_add(WorkRecord& record, const Host::Import& target);
  void draw_order(Work& work);
  void completed(uint32_t host, HostJetty& jetty, const Completion& completion);
  void imply(uint32_t host, uint32_t jetty, uint64_t before);
  std::optional<uint64_t> arrived(uint32_t host, Buffers& buffers, const Completion& completion);
  void look_at_words(uint32_t host);
  void count_arrival(uint32_t host, WorkRecord& record);
  void settle(WorkRecord& record);
  void settle_add(WorkRecord& record);
  void settle_borrow(WorkRecord& record);
  void check_counter(uint32_t host) const;
  bool not_executed(Status status) const;
  bool taken_back(const WorkRecord& record) const;
  static bool not_received(const WorkRecord& record);
  void flush(uint32_t host);
  template <class Queue>
  static void post_receives(Queue& queue, Buffers& buffers);
  const Host::Import& import(uint32_t host, uint32_t target, uint32_t jetty);
  void split(WorkRecord& record);
  void advance(Duration by);
  void end_peacefully();
  void post_closers();
  void check_end();
  void check_rings();
  uint64_t outstanding() const;
  [[noreturn]] void fail(const WorkRecord& record, const std::string& rule) const;

  const uint64_t seed_;
  const WorldOptions options_;
  Prng prng_;
  std::string name_;
  std::shared_ptr<drivers::sim::Network> network_;
  std::optional<WindowFile> window_;
  std::vector<Host> hosts_;
  std::deque<WorkRecord> works_;  // by number - 1
  std::vector<std::shared_ptr<Memory>> memories_;
  std::vector<Healing> healings_;
  std::vector<Stop> stops_;
  Time stuck_until_{};  // if transfers are stuck
  std::vector<std::pair<uint32_t, uint32_t>>
      closers_;  // host and Jetty that still have to post a last work
  uint64_t first_closer_ = UINT64_MAX;
  uint64_t completed_ = 0;
  uint64_t unknown_ = 0;
  bool leaked_ = false;  // a device has sent memory that was returned to the application
};

}  // namespace urma::test
