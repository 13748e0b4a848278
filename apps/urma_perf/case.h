// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/urma_perf/ordering.h"
#include "apps/urma_perf/tests.h"

namespace urma::apps::perf {

// The numbers of a Plan that both sides know. The server gets the blocks themselves in the ledger,
// at the end of a round.
struct PlanShape {
  uint32_t blocks = 0;
  uint64_t block_bytes = 0;    // of each; 0 if they differ
  uint32_t entries = 0;        // blocks of a scatter list; 0: there are no lists
  uint32_t works = 0;          // of all blocks
  uint32_t works_at_once = 0;  // of one post
  uint64_t source_bytes = 0;   // up to the last byte of a block, at the client
  uint64_t target_bytes = 0;   // the same at the server
};

// One measurement: what both sides agree on before it begins.
struct Case {
  const Test* test = nullptr;
  uint64_t bytes = 0;         // of one message
  uint32_t depth = 1;         // outstanding works of each Jetty
  uint32_t jetties = 1;       // of each side
  uint32_t signal_every = 1;  // one work in so many has a completion
  bool verify = true;
  bool limit = false;   // also measure raw sockets or raw memory
  bool summed = false;  // both ends of the limit compute a CRC of each datagram of a train
  // Uses memory of each process instead of the device's, so that nothing is mapped.
  bool own_memory = false;
  std::optional<uint32_t> gpu{};  // uses memory of this GPU
  // For reads: the size of the memory from which random parts are read; 0 means always the same
  // part.
  uint64_t spread = 0;
  PlanShape plan{};  // of a test with blocks
  Ordering ordering{};
  const NamedAtomic* atomic = &named_atomics.front();
  uint64_t seed = 1;  // of the pattern of the bytes
};

inline constexpr uint64_t most_memory_bytes = uint64_t{8} << 30;  // of one side
inline constexpr uint64_t most_datagram_bytes = 8192;             // for any medium
// Bare sockets send messages of this size or more in trains.
inline constexpr uint64_t least_train_bytes = 1024;
inline constexpr uint32_t most_depth = 16 * 1024;
// The most consecutive unsignalled works in a ping-pong, which has only a few berths.
inline constexpr uint32_t most_unsignalled = 32;
inline constexpr uint32_t most_jetties = 512;  // their ids fit in one control message

// Returns a depth with about 4 MiB in flight, which a receive buffer can hold.
uint32_t default_depth(const Test& test, uint64_t bytes);

// Returns how many calls of a lane lie between two readings of the clock, which take as long as
// several calls: as many as 16 KiB hold, 64 at most. Each call of such a group has its own slot.
uint32_t calls_per_group(const Case& what);

// Returns why a lane cannot be measured if the other side's memory is not mapped, for this reason.
std::string lane_without_mapping(const Test& test, std::string_view why);

// Returns the parameters of a case in a line, for the users of both sides.
std::string parameters_text(const Case& what);

// Returns why a case is not valid, as a text for people; empty if it is valid. Both sides check
// this, because a server does not rely on its clients.
std::string objection(const Case& what);

}  // namespace urma::apps::perf
