#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apps/urma_perf/ordering.h"
#include "apps/urma_perf/tests.h"

namespace urma::perf {

// One measurement: what both sides agree on before it begins.
struct Case {
  const Test* test = nullptr;
  uint64_t bytes = 0;         // of a message
  uint32_t depth = 1;         // works outstanding, of each Jetty
  uint32_t jetties = 1;       // of each side
  uint32_t signal_every = 1;  // one work of so many has a completion
  bool verify = true;
  bool limit = false;       // raw sockets or memory beside it
  bool own_memory = false;  // of each process, not the device's: nothing is mapped
  uint64_t spread = 0;      // reads: from random places of so many bytes; 0: from one
  Ordering ordering{};
  const NamedAtomic* atomic = &named_atomics.front();
  uint64_t seed = 1;  // of the pattern
};

inline constexpr uint64_t most_memory_bytes = uint64_t{8} << 30;  // of one side
inline constexpr uint64_t most_datagram_bytes = 8192;             // of any medium
inline constexpr uint32_t most_depth = 16 * 1024;
// The longest row of unsignalled works in a ping-pong, which has only a few berths.
inline constexpr uint32_t most_unsignalled = 32;
inline constexpr uint32_t most_jetties = 512;  // their numbers fit one control message

// Keeps about 4 MiB on their way, what a receive buffer holds.
uint32_t default_depth(const Test& test, uint64_t bytes);

// Says for people why a case is not valid. Empty if it is. Both sides check: a server does not rely
// on its clients.
std::string objection(const Case& what);

}  // namespace urma::perf
