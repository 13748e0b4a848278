// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "congestion/controller.h"
#include "engine/device_counters.h"
#include "engine/runner.h"

namespace urma::fuzz {

// A process on a port that the test made: a device with one Jetty and one segment, whose
// neighbouring memory is checked. It does the same as urma.hpp, for a port that no device string
// names.
class Node {
 public:
  static constexpr size_t guard = 4096;

  Node(std::unique_ptr<drivers::PacketPort> port, size_t segment_bytes, uint64_t seed)
      : memory_(segment_bytes + 2 * guard, untouched),
        runner_(std::move(port), settings(), Threads::served,
                std::make_unique<SeededEntropy>(seed)),
        jfc_(std::make_shared<jetty::Jfc>(jetty::Queues::entries_of(berths, receives))),
        queues_(std::make_shared<jetty::Queues>(berths, receives, jfc_)) {
    jfc_->reserve(queues_->entries());
    (void)runner_.start();
    runner_.call([&](engine::Engine& engine, Time) {
      made_ = *engine.jetty_control().create({queues_, {}});
      memseg::SegmentTable::Made segment_made;
      engine.registrations().add({.base = segment().data(),
                                  .bytes = segment().size(),
                                  .rights = Rights::read | Rights::write},
                                 TokenPolicy::plain_text, {}, segment_made);
      token_ = segment_made.token;
      return true;
    });
  }

  std::span<std::byte> segment() { return std::span(memory_).subspan(guard, segment_bytes()); }
  // Returns whether the memory on both sides of the segment is unchanged.
  bool surroundings_untouched() const {
    const auto same = [](std::byte byte) { return byte == untouched; };
    return std::all_of(memory_.begin(), memory_.begin() + guard, same) &&
           std::all_of(memory_.end() - guard, memory_.end(), same);
  }

  // Returns the other node's segment, as this node names it.
  RemoteSegment import(Node& other) {
    RemoteSegment remote{.peer = {},
                         .address = reinterpret_cast<uint64_t>(other.segment().data()),
                         .bytes = other.segment_bytes(),
                         .token_id = other.token_.id,
                         .token = other.token_.value,
                         .rights = Rights::read | Rights::write};
    const drivers::PortFacts& facts = other.runner_.port_facts();
    runner_.call([&](engine::Engine& engine, Time) {
      remote.peer = engine.transport().know(facts.eid, facts.self, other.runner_.life());
      return true;
    });
    return remote;
  }

  // Posts one work and waits for its completion.
  Completion run(const Work& work) {
    Completion done{.status = Status::would_block, .from = {}};
    if (runner_.post(made_.handle.index, *queues_, {&work, 1}) == 0) return done;
    done.status = Status::timed_out;
    runner_.wait(*jfc_, std::chrono::seconds(30));
    jfc_->poll({&done, 1});
    return done;
  }

  Statistics statistics() {
    Statistics out;
    runner_.call([&](engine::Engine& engine, Time) {
      out = statistics_of(engine);
      return true;
    });
    return out;
  }
  engine::Runner& runner() { return runner_; }

 private:
  static constexpr std::byte untouched{0xcd};
  static constexpr uint16_t berths = 16;
  static constexpr uint16_t receives = 4;

  static engine::EngineSettings settings() {
    return {.life = Incarnation(77),
            .controller = &congestion::controllers().front(),
            .limits = {.jetties = 8, .peers = 32, .segments = 8}};
  }
  size_t segment_bytes() const { return memory_.size() - 2 * guard; }

  std::vector<std::byte> memory_;
  engine::Runner runner_;
  std::shared_ptr<jetty::Jfc> jfc_;
  std::shared_ptr<jetty::Queues> queues_;
  engine::JettyControl::Made made_;
  memseg::SegmentTable::Token token_;
};

}  // namespace urma::fuzz
