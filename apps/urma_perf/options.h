#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::apps::perf {

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
  std::vector<uint64_t> sizes;  // empty means the default sizes of the test
  bool sweep = false;           // all sizes, instead of the listed ones
  std::optional<double> seconds;
  std::optional<uint64_t> count;
  std::optional<uint32_t> depth;
  uint32_t signal_every = 1;
  uint32_t jetties = 1;
  uint32_t threads = 1;
  const ThreadsMode* threads_mode = &threads_modes.front();
  std::string device;  // empty if the user named none: then the program chooses
  const NamedRetransmission* retransmit = nullptr;  // null means the device's default
  std::string congestion;                           // by name; empty means the device's default
  std::string peer_device;                          // with --self; empty means the same as `device`
  bool verify = true;
  bool own_memory = false;
  uint64_t spread = 0;
  Ordering ordering{};
  const NamedAtomic* atomic = &named_atomics.front();
  uint64_t churn = 0;  // reg: registrations per second, while another device writes
  bool limit = false;
  uint32_t rounds = 5;
  uint64_t seed = 1;
  bool json = false;
  std::string json_file;
  bool verbose = false;
  bool once = false;       // server: ends after one client
  std::optional<int> cpu;  // the processor to bind to
  std::optional<int>
      report_to;  // server: a file descriptor to which the address is written instead of stdout
  std::optional<int> speaks;  // tests give another version of the protocol
  std::vector<std::string> command;

  // Returns the case for one size, or all cases.
  Case case_for(uint64_t bytes) const;
  std::vector<Case> cases() const;
};

// Throws a Failure (usage) that says what is wrong and what would be valid.
Options parse_options(int count, char** arguments);

}  // namespace urma::apps::perf
