#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::perf {

// The checked command line.
struct Options {
  enum class Mode : uint8_t {
    help,
    help_all,
    version,
    server,
    test,
    main_job,
    registration,
    budget
  };

  Mode mode = Mode::help;
  const Test* test = nullptr;
  std::string host;
  bool self = false;
  std::vector<uint64_t> sizes;  // empty: the test's own
  bool sweep = false;           // all sizes instead
  std::optional<double> seconds;
  std::optional<uint64_t> count;
  std::optional<uint32_t> depth;
  uint32_t signal_every = 1;
  uint32_t jetties = 1;
  uint32_t threads = 1;
  const ThreadsMode* threads_mode = &threads_modes.front();
  std::string device;                               // empty: chosen
  const NamedRetransmission* retransmit = nullptr;  // the device's default if null
  std::string peer_device;                          // with --self; empty: as `device`
  bool verify = true;
  bool own_memory = false;
  uint64_t spread = 0;
  Ordering ordering{};
  const NamedAtomic* atomic = &named_atomics.front();
  uint64_t churn = 0;  // reg: so many times a second, under load
  bool limit = false;
  uint32_t rounds = 5;
  uint64_t seed = 1;
  bool json = false;
  std::string json_file;
  bool verbose = false;
  bool once = false;             // server: one client
  std::optional<int> cpu;        // bind to it
  std::optional<int> report_to;  // server: a descriptor to say where it is, instead of stdout
  std::optional<int> speaks;     // a protocol that is not ours, for tests
  std::vector<std::string> command;

  // The case for one size, and all cases.
  Case case_for(uint64_t bytes) const;
  std::vector<Case> cases() const;
};

// Throws a Failure (usage) that says what is wrong and what would be right.
Options parse_options(int count, char** arguments);

}  // namespace urma::perf
