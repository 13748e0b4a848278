// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/stages.h"

#include <algorithm>

#include "apps/common/message.h"

namespace urma::apps::perf {
namespace {

// Adds rows until their time is used up. `measured` is the time that they share.
class RowMaker {
 public:
  RowMaker(std::vector<StageRow>& rows, double measured) : rows_(rows), measured_(measured) {}

  void stage(std::string_view name, const StageTime& time, double cost_ns) {
    const double all = ns(time.total);
    const double interrupted = name == "wait" ? 0 : std::min(ns(time.long_total), all);
    // A stage cannot have taken less than nothing, although its boundaries may overlap with it.
    const double cost = std::min(static_cast<double>(time.times) * cost_ns, all - interrupted);
    if (interrupted > 0) interruptions_ += time.long_times;
    if (cost_ns > 0) ends_ += time.times;
    interrupted_ += interrupted;
    costs_ += cost;
    row(name, time.times, all - interrupted - cost);
  }
  void finish(std::string_view rest) {
    row("over_1ms", interruptions_, interrupted_);
    row("timing", ends_, costs_);
    double sum = 0;
    for (const StageRow& one : rows_) sum += one.total_ns;
    row(rest, 0, std::max(measured_ - sum, 0.0));
  }

 private:
  static double ns(Duration time) { return static_cast<double>(time.count()); }
  void row(std::string_view name, uint64_t times, double total) {
    rows_.push_back({name, times, total, measured_ > 0 ? total / measured_ : 0});
  }

  std::vector<StageRow>& rows_;
  const double measured_;
  uint64_t ends_ = 0;
  double costs_ = 0;
  uint64_t interruptions_ = 0;
  double interrupted_ = 0;
};

std::array<int64_t, 4> numbers_of(const StageTime& time) {
  return {static_cast<int64_t>(time.times), time.total.count(),
          static_cast<int64_t>(time.long_times), time.long_total.count()};
}

}  // namespace

void SideProfile::add(const SideProfile& other) {
  seconds += other.seconds;
  threads = other.threads;
  cost_ns = other.cost_ns;
  sum(build, other.build);
  for (size_t i = 0; i < stage_count; ++i) sum(stages[i], other.stages[i]);
}

void SideProfiles::add(const SideProfiles& other) {
  const auto add_side = [](std::optional<SideProfile>& sum, const std::optional<SideProfile>& one) {
    if (!one) return;
    if (!sum) sum.emplace();
    sum->add(*one);
  };
  add_side(client, other.client);
  add_side(server, other.server);
}

SideProfile between(const Profile& begin, const Profile& end, uint32_t threads) {
  SideProfile out{
      .seconds = seconds((end.at - begin.at).count()), .threads = threads, .cost_ns = end.cost_ns};
  for (size_t i = 0; i < stage_count; ++i) {
    const StageTime& from = begin.stages[i];
    const StageTime& to = end.stages[i];
    out.stages[i] = {to.times - from.times, to.total - from.total, to.long_times - from.long_times,
                     to.long_total - from.long_total};
  }
  return out;
}

void to_json(nlohmann::json& out, const SideProfile& in) {
  out = {{"seconds", in.seconds},
         {"threads", in.threads},
         {"cost_ns", in.cost_ns},
         {"build", numbers_of(in.build)}};
  auto& stages = out["stages"] = nlohmann::json::object();
  for (const StageInfo& info : all_stages()) {
    const StageTime& time = in.stages[static_cast<uint8_t>(info.stage)];
    stages[std::string(info.name)] = numbers_of(time);
  }
}

void from_json(const nlohmann::json& in, SideProfile& out) {
  const auto time_of = [](const nlohmann::json& body, const char* name, StageTime& time) {
    std::vector<int64_t> numbers;
    read_optional(body, name, numbers);
    numbers.resize(4);
    time = {static_cast<uint64_t>(numbers[0]), Duration(numbers[1]),
            static_cast<uint64_t>(numbers[2]), Duration(numbers[3])};
  };
  read_field(in, "seconds", out.seconds);
  read_field(in, "threads", out.threads);
  read_field(in, "cost_ns", out.cost_ns);
  time_of(in, "build", out.build);
  nlohmann::json stages;
  if (const auto found = in.find("stages"); found != in.end()) stages = *found;
  // A peer of another version may have other stages; those that it lacks took no time.
  for (const StageInfo& info : all_stages()) {
    time_of(stages, std::string(info.name).c_str(), out.stages[static_cast<uint8_t>(info.stage)]);
  }
}

StageRows rows_of(const SideProfile& profile) {
  StageRows out;
  const double measured = profile.seconds * 1e9;
  RowMaker calls(out.calls, measured * profile.threads);
  RowMaker device(out.device, measured);
  calls.stage("build", profile.build, 0);
  for (const StageInfo& info : all_stages()) {
    const StageTime& time = profile.stages[static_cast<uint8_t>(info.stage)];
    (is_call(info.stage) ? calls : device).stage(info.name, time, profile.cost_ns);
  }
  calls.finish("elsewhere");
  device.finish("no_pass");
  return out;
}

}  // namespace urma::apps::perf
