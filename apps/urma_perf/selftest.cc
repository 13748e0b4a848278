// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/selftest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/json_output.h"
#include "apps/urma_perf/main_job.h"

namespace urma::apps::perf {
namespace {

struct CheckedCase {
  std::string_view test;
  uint64_t bytes;
};
constexpr CheckedCase checked_cases[] = {
    {"write_lat", 64},     {"write_bw", 64 << 10},    {"read_lat", 64},
    {"read_bw", 64 << 10}, {"send_lat", 64},          {"send_bw", 4 << 10},
    {"write_imm_lat", 1},  {"write_imm_bw", 4 << 10}, {"atomic_lat", 8},
};
constexpr uint64_t messages_each = 200;

SelfRun run_on(const Options& options, const std::string& device) {
  SelfRun run{.device = device,
              .peer_device = device,
              .cases = {},
              .schedule = {.threads_mode = options.threads_mode,
                           .processors = {},
                           .rounds = 1,
                           .most_rounds = 1,
                           .round_time = second / 2,
                           .limit_time = 0,
                           .warm_up = millisecond,
                           .round_count = messages_each}};
  for (const CheckedCase& one : checked_cases) {
    Options each = options;
    each.test = find_test(one.test);
    run.cases.push_back(each.case_for(one.bytes));
  }
  return run;
}

std::vector<SelfRun> all_runs(const Options& options) {
  std::vector<std::string> devices = {std::string(default_device),
                                      "udp:", "fault(loss=5%,seed=7):udp:"};
  if (!options.device.empty()) devices = {options.device};
  std::vector<SelfRun> runs;
  for (const std::string& device : devices) runs.push_back(run_on(options, device));
  return runs;
}

// Counts the checks, and prints each.
class Checks {
 public:
  explicit Checks(bool json) : json_(json) {}

  void add(const Result& result) {
    const uint64_t wrong = result.verdict.wrong;
    const std::string why = wrong > 0                ? result.verdict.first
                            : result.messages() == 0 ? "no message completed"
                                                     : "";
    add(result.device, result.what.test->name, result.what.bytes, result.messages(), why);
  }
  // The device, or its server, failed, so that its further checks were not made.
  void add(const SelfRun& run, const Failure& failure) {
    add(run.device, "", 0, 0, failure.what());
  }
  // Prints the verdict.
  Exit finish(double took) const {
    const bool whole = failed_ == 0 && !interrupted();
    if (json_) {
      print_json({{"schema", json_schema},
                  {"passed", whole},
                  {"seconds", took},
                  {"interrupted", interrupted()},
                  {"checks", all_}});
    } else if (interrupted()) {
      print(fmt::format("INTERRUPTED after {} checks, of which {} failed\n", all_.size(), failed_));
    } else if (whole) {
      print(fmt::format("PASS: {} checks in {:.1f} s\n", all_.size(), took));
    } else {
      print(fmt::format("FAIL: {} of {} checks in {:.1f} s\n", failed_, all_.size(), took));
    }
    if (failed_ > 0) {
      print_error("urma_perf: --selftest: a check failed. Fix: urma_info --doctor");
      return Exit::threshold;
    }
    return interrupted() ? Exit::interrupted : Exit::ok;
  }

 private:
  void add(const std::string& device, std::string_view test, uint64_t bytes, uint64_t messages,
           const std::string& why) {
    all_.push_back({{"device", device},
                    {"test", test},
                    {"size_bytes", bytes},
                    {"messages", messages},
                    {"passed", why.empty()},
                    {"why", why}});
    if (!why.empty()) ++failed_;
    if (json_) return;
    const std::string what = test.empty() ? "" : fmt::format(" {} {}", test, size_text(bytes));
    print(why.empty()
              ? fmt::format("ok    {}{}: {} messages, each byte right\n", device, what, messages)
              : printable(fmt::format("FAIL  {}{}: {}", device, what, why)) + "\n");
  }

  const bool json_;
  nlohmann::json all_ = nlohmann::json::array();
  size_t failed_ = 0;
};

}  // namespace

Exit selftest(const Options& given) {
  Options options = given;
  options.self = true;  // so that its clients look for the servers that it starts
  const int64_t begin = now();
  Checks checks(options.form == Options::Form::json);
  run_self(
      options, all_runs(options),
      [&](const Client&, Result&& result) {
        if (!interrupted()) checks.add(result);
      },
      [&](const SelfRun& run, const Failure& failure) { checks.add(run, failure); });
  return checks.finish(seconds(now() - begin));
}

}  // namespace urma::apps::perf
