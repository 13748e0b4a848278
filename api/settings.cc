// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"
#include "drivers/driver.h"
#include "engine/device_counters.h"

namespace urma {
namespace {

constexpr std::string_view thread_modes[] = {"automatic", "served", "inlined"};

// `no_signals`: why the one that was asked for is not used; or empty.
// `user`: the setting of the user that chose it, if it was not the program.
Setting congestion_control(const std::string& used, bool given, const std::string& no_signals,
                           const std::optional<Setting>& user) {
  const bool asked = given && no_signals.empty();
  Setting out{.name = "congestion",
              .value = used,
              .origin = asked                ? Origin::option
                        : no_signals.empty() ? Origin::by_default
                                             : Origin::driver,
              .source = asked ? "DeviceOptions" : no_signals,
              .meaning =
                  "the congestion control, of channels whose peer reports what it needs; others "
                  "use aimd"};
  if (asked && user) {
    out.origin = user->origin;
    out.source = user->source;
  }
  return out;
}

// Says that the user chose the file of a capture, and not the device string.
void add_origin_of_capture(SettingList& settings, const std::optional<Setting>& user) {
  if (!user) return;
  for (Setting& one : settings) {
    if (!one.name.ends_with("pcap.file") || !one.value.starts_with(user->value)) continue;
    one.origin = user->origin;
    one.source = user->source;
  }
}

void add_options(SettingList& out, const DeviceOptions& options, Setting congestion) {
  const DeviceOptions usual;
  const auto add = [&](const char* name, std::string value, bool given, const char* meaning) {
    out.push_back({.name = name,
                   .value = std::move(value),
                   .origin = given ? Origin::option : Origin::by_default,
                   .source = given ? "DeviceOptions" : "",
                   .meaning = meaning});
  };
  add("threads", std::string(thread_modes[static_cast<size_t>(options.threads)]),
      options.threads != usual.threads, "which threads run the device");
  add("operation_timeout", duration_text(options.operation_timeout),
      options.operation_timeout != usual.operation_timeout,
      "a work without progress for this long ends");
  add("idle_timeout", duration_text(options.idle_timeout),
      options.idle_timeout != usual.idle_timeout,
      "a channel that is not used for this long is closed; 0: no channel is closed");
  out.push_back(std::move(congestion));
  const Limits& limits = options.limits;
  add("limits.jetties", std::to_string(limits.jetties), limits.jetties != usual.limits.jetties,
      "the most Jetties and JFRs");
  add("limits.peers", std::to_string(limits.peers), limits.peers != usual.limits.peers,
      "the most peers");
  add("limits.segments", std::to_string(limits.segments), limits.segments != usual.limits.segments,
      "the most segments");
}

Setting past_caches(uint64_t from) {
  const bool never = from == UINT64_MAX;
  return {.name = "past_caches_from",
          .value = never ? "never" : size_text(from),
          .origin = never ? Origin::by_default : Origin::measured,
          .source = never ? "bypassing the caches is not faster here, or was not measured: no "
                            "large mapped segment was imported yet"
                          : "when the first large mapped segment was imported",
          .meaning = "works from this size on bypass the caches when they are copied"};
}

// Returns a rate in bits, as device strings accept it.
std::string bit_rate_text(uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return "unknown";
  constexpr std::pair<uint64_t, const char*> units[] = {
      {1'000'000'000, "Gbit"}, {1'000'000, "Mbit"}, {1'000, "Kbit"}};
  const uint64_t bits = bytes_per_second * 8;
  for (const auto& [unit, name] : units) {
    if (bits % unit == 0) return std::to_string(bits / unit) + name;
  }
  return std::to_string(bits / 1000) + "Kbit";
}

// Lists the names of the fields that a port carries.
std::string carried(const drivers::PortFacts::Carries& carries) {
  std::string names;
  const auto add = [&](bool has, const char* name) {
    if (has) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(carries.ecn, "ecn");
  add(carries.cci, "cci");
  add(carries.lbf, "lbf");
  add(carries.vl, "vl");
  return names.empty() ? "nothing" : names;
}

// Returns the name of the controller that the meters of the switches serve.
const char* meter_name(congestion::Metering metering) {
  switch (metering) {
    case congestion::Metering::unknown:
      return "unknown";
    case congestion::Metering::none:
      return "none";
    case congestion::Metering::increases:
      return "caqm_w";
    case congestion::Metering::rates:
      return "caqm_r";
    case congestion::Metering::other:
      break;
  }
  return "other";
}

}  // namespace

Result<SettingList> Device::settings() {
  return guarded("settings", [&]() -> Result<SettingList> {
    if (auto able = usable(state_, "settings"); !able) return able.error();
    uint64_t past_caches_from = 0;
    state_->runner->call([&](engine::Engine& engine, Time) {
      past_caches_from = statistics_of(engine).past_caches_from;
      return true;
    });
    const drivers::PortFacts& facts = state_->runner->port_facts();
    SettingList out = facts.settings;
    const uint32_t engines = state_->engines().count();
    out.push_back({"engines", std::to_string(engines),
                   engines > 1 ? Origin::device_string : Origin::by_default, "",
                   "how many ports the device has, each run by other threads"});
    const auto fact = [&](const char* name, bool value, const char* meaning) {
      out.push_back({name, yes_or_no(value), Origin::driver, "a property of the medium", meaning});
    };
    fact("lossless", facts.lossless,
         "the medium loses nothing and keeps the order: no retransmission");
    fact("mapped_memory", facts.mapped.base != nullptr,
         "allocated memory is mapped by peers: writes and reads are copies");
    out.push_back({"carries", carried(facts.carries), Origin::driver, "a property of the medium",
                   "the congestion signals that packets carry: ecn, cci, lbf, vl"});
    out.push_back({"port_meters", meter_name(facts.metering), Origin::driver,
                   "a property of the medium",
                   "the congestion control whose requests the switches answer"});
    out.push_back({"line_rate", bit_rate_text(facts.line_bytes_per_second), Origin::driver,
                   "a property of the medium",
                   "the rate of the link, which no paced channel exceeds; dcqcn starts with it"});
    out.push_back({"scheduling_delay", duration_text(facts.scheduling_delay), Origin::driver,
                   "a property of the medium",
                   "how late this device may run on a machine with a vacant processor"});
    fact("virtual_time", state_->runner->simulated(), "time passes only while a thread waits");
    if (facts.mapped.base != nullptr) out.push_back(past_caches(past_caches_from));
    add_options(out, state_->options,
                congestion_control(state_->congestion, !state_->options.congestion.empty(),
                                   state_->no_signals, state_->user_congestion));
    add_origin_of_capture(out, state_->user_capture);
    if (!state_->runner->simulated()) {
      out.push_back(engine::NameFiles::directory_of_this_user());
    }
    return out;
  });
}

std::vector<DriverInfo> list_drivers() { return drivers::describe_drivers(); }

}  // namespace urma
