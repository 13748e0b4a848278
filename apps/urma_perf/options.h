// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/flows.h"
#include "apps/urma_perf/plan.h"
#include "apps/urma_perf/threads_mode.h"
#include "apps/urma_perf/threshold.h"

namespace urma::apps::perf {

// The checked command line.
struct Options {
  // How results are printed on stdout.
  enum class Form : uint8_t { table, json, json_stream, csv };
  enum class Mode : uint8_t {
    help,
    help_all,
    version,
    server,
    test,
    main_job,
    selftest,
    ping,
    group,
    comparison,
    registration,
    budget
  };

  Mode mode = Mode::help;
  const Test* test = nullptr;     // in the modes that run one
  std::string host;               // of the server
  bool self = false;              // both sides on this host, so no server is needed
  std::vector<uint64_t> sizes;    // empty means the default sizes of the test
  bool sweep = false;             // all sizes, instead of the listed ones
  std::optional<double> seconds;  // how long each size is measured
  std::optional<uint64_t> count;  // works for each size, instead of a time
  std::optional<double> rate;     // messages per second, sent when they are due (--rate)
  std::optional<uint32_t> depth;  // works that are outstanding; without it the test's default
  uint32_t signal_every = 1;      // one of so many works has a completion
  std::vector<uint32_t> jetties;  // over which each side spreads the works: each has rows
  uint32_t threads = 1;           // that post works, on this side
  const ThreadsMode* threads_mode = &threads_modes.front();  // which threads run passes
  std::string device;       // empty if the user named none: then the program chooses
  std::string device_from;  // its origin: --device, URMA_DEVICE or FILE:LINE; or empty
  const NamedRetransmission* retransmit = nullptr;  // null means the device's default
  std::string congestion;                           // by name; empty means the device's default
  std::string peer_device;                          // with --self; empty means the same as `device`
  bool verify = true;                               // checks the bytes that arrived
  bool own_memory = false;  // registers this process's memory, instead of the device's (--private)
  std::optional<uint32_t> gpu{};  // registers memory of this GPU (--memory)
  uint64_t spread = 0;  // bytes of memory, from random places of which reads read; 0: one place
  Ordering ordering{};  // of the works of a Jetty
  const NamedAtomic* atomic = &named_atomics.front();  // of the tests of atomics
  bool bidirectional = false;             // also in the other direction, at the same time
  const Traffic* traffic = nullptr;       // between several processes; null means one flow
  std::vector<uint64_t> processes = {4};  // their numbers, each of which is measured
  uint64_t block = Plan::usual_bytes;     // kv: the size of a block, and how many there are
  uint32_t blocks = Plan::usual_blocks;
  std::string plan_file;             // kv: describes the blocks; empty: they are all alike
  std::vector<uint32_t> entries;     // kv: of scatter lists, each of which has a row
  std::shared_ptr<const Plan> plan;  // kv: the blocks
  uint64_t churn = 0;                // reg: registrations per second, while another device writes
  bool limit = false;                // compares with what the medium itself can do
  bool summed = false;               // whose trains of datagrams both ends compute a CRC of
  uint32_t rounds = 5;   // parts in which each size is measured, with the limit between them
  uint64_t seed = 1;     // of the bytes that are sent
  bool profile = false;  // also measures how long each stage of a work takes
  bool wide = false;     // all columns of the table
  bool brief = false;    // only the main job's ten rows that say most (--short)
  Form form = Form::table;
  std::vector<Threshold> thresholds;  // of which none may be broken
  std::string before;                 // comparison: the two files
  std::string after;
  std::string json_file;       // also gets this object; empty: none
  std::string histogram_file;  // gets the histogram of the only result; empty: none
  std::string plot_file;       // gets a drawing of the results; empty: none
  bool verbose = false;        // prints what was chosen, and each round
  bool quiet = false;          // prints no progress and no intervals
  bool once = false;           // server: ends after one client
  std::optional<int> cpu;      // the processor to bind to
  std::optional<int>
      report_to;  // server: a file descriptor to which the address is written instead of stdout
  std::optional<int> speaks;         // tests give another version of the protocol
  std::vector<std::string> command;  // as it was typed, for the results

  // Returns the case for one size, or all cases.
  Case case_for(uint64_t bytes) const;
  Case case_for_lists(uint32_t entries) const;
  std::vector<Case> cases() const;
  // Returns those with the first number of Jetties.
  std::vector<Case> cases_of_sizes() const;
  // Returns for how long each case is measured; for centuries if a count ends it.
  double seconds_each() const;
};

// Throws a Failure (usage) that says what is wrong and what would be valid.
Options parse_options(int count, char** arguments);

}  // namespace urma::apps::perf
