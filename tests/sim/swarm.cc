// SPDX-License-Identifier: Apache-2.0
// Runs worlds. A seed decides everything: swarm --seeds 17-17 repeats world 17. --windows runs only
// worlds in a window; --not-coherent runs all worlds in windows that are not cache-coherent;
// --rings runs all worlds on rings of DPDK; --groups runs all worlds with messages to groups of
// Jetties; --rdma runs only worlds with devices that access the
// memory of peers; --fresh 100 adds a hundred worlds, whose seeds begin at
// URMA_TEST_SEED if that is set.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "drivers/dpdk/loader.h"
#include "tests/fresh_seed.h"
#include "tests/sim/world.h"

namespace urma::test {
namespace {

bool not_coherent = false;
bool rings = false;
bool groups = false;

WorldOptions options_of(uint64_t seed) {
  Prng prng(seed);
  const WorldOptions drawn = WorldOptions::drawn(prng);
  if (rings) return drawn.on_rings(prng);
  if (groups) return drawn.with_groups(prng);
  return not_coherent ? drawn.not_coherent() : drawn.with_rdma(prng);
}

struct Outcome {
  uint64_t hash = 0;
  uint64_t completed = 0;
  uint64_t unknown = 0;
  uint64_t accesses = 0;      // of devices to the memory of peers
  uint64_t strays = 0;        // of these, after their works were told that they have failed
  uint64_t failed_pairs = 0;  // of these devices
};

Outcome run_world(uint64_t seed) {
  Outcome outcome;
  {
    World world(seed, options_of(seed));
    world.run();
    const drivers::sim::Network::Counters& counters = world.counters();
    outcome = {world.trace_hash(), world.completed(), world.unknown(),
               counters.accesses,  counters.strays,   counters.failed_pairs};
  }
  if (rings && drivers::dpdk::load_plugin().value()->leaked() != 0) {
    throw Violation("a world that has ended holds no packet buffer");
  }
  return outcome;
}

bool run_seed(const char* program, uint64_t seed, bool verbose, Outcome& total) {
  try {
    const Outcome outcome = run_world(seed);
    // Runs one of ten worlds twice: the same seed must give the same world, to the last byte.
    if (seed % 10 == 0 && run_world(seed).hash != outcome.hash) {
      throw Violation("the same seed gives the same trace");
    }
    total.completed += outcome.completed;
    total.unknown += outcome.unknown;
    total.accesses += outcome.accesses;
    total.strays += outcome.strays;
    total.failed_pairs += outcome.failed_pairs;
    if (verbose) {
      std::printf("seed %lu: %lu works, %lu unknown, trace %016lx\n", seed, outcome.completed,
                  outcome.unknown, outcome.hash);
    }
    return true;
  } catch (const std::exception& failure) {
    std::printf("seed %lu: %s\n  world: %s\n  repeat: %s %s--seeds %lu-%lu\n", seed, failure.what(),
                options_of(seed).describe().c_str(), program,
                rings          ? "--rings "
                : groups       ? "--groups "
                : not_coherent ? "--not-coherent "
                               : "",
                seed, seed);
    return false;
  }
}

}  // namespace
}  // namespace urma::test

int main(int count, char** arguments) {
  uint64_t first = 1;
  uint64_t last = 40;
  uint64_t fresh = 0;  // number of additional worlds
  bool verbose = false;
  bool windows = false;
  bool rdma = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "-v") == 0) {
      verbose = true;
    } else if (std::strcmp(arguments[i], "--windows") == 0) {
      windows = true;
    } else if (std::strcmp(arguments[i], "--rdma") == 0) {
      rdma = true;
    } else if (std::strcmp(arguments[i], "--not-coherent") == 0) {
      urma::test::not_coherent = true;
    } else if (std::strcmp(arguments[i], "--rings") == 0) {
      urma::test::rings = true;
    } else if (std::strcmp(arguments[i], "--groups") == 0) {
      urma::test::groups = true;
    } else if (i + 1 < count && std::strcmp(arguments[i], "--seeds") == 0 &&
               std::sscanf(arguments[i + 1], "%lu-%lu", &first, &last) == 2) {
      ++i;
    } else if (i + 1 < count && std::strcmp(arguments[i], "--fresh") == 0 &&
               std::sscanf(arguments[i + 1], "%lu", &fresh) == 1) {
      ++i;
    } else {
      std::fprintf(stderr,
                   "usage: %s [-v] [--windows | --not-coherent | --rings | --groups | --rdma] "
                   "--seeds FIRST-LAST [--fresh COUNT]\n",
                   arguments[0]);
      return 2;
    }
  }
  urma::test::Outcome total;
  uint64_t worlds = 0;
  uint64_t failed = 0;
  const auto run = [&](uint64_t seed) {
    if (windows && !urma::test::options_of(seed).window) return;
    if (rdma && urma::test::options_of(seed).rdma == 0) return;
    ++worlds;
    failed += !urma::test::run_seed(arguments[0], seed, verbose, total);
  };
  for (uint64_t seed = first; seed <= last; ++seed) run(seed);
  const uint64_t begin = urma::test::fresh_seed();
  for (uint64_t i = 0; i < fresh; ++i) run(begin != 0 ? begin + i : last + 1 + i);
  std::printf("%lu worlds, %lu failed; %lu works completed, %lu unknown\n", worlds, failed,
              total.completed, total.unknown);
  if (total.accesses > 0) {
    std::printf(
        "%lu accesses to memory of peers, %lu of them after their work had failed; %lu "
        "failed pairs\n",
        total.accesses, total.strays, total.failed_pairs);
  }
  return failed == 0 ? 0 : 1;
}
