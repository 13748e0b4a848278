#include "api/handles.h"
#include "drivers/driver.h"

namespace urma {
namespace {

constexpr std::string_view thread_modes[] = {"automatic", "served", "inlined"};

void add_options(SettingList& out, const DeviceOptions& options, const std::string& congestion) {
  const DeviceOptions usual;
  const auto add = [&](const char* name, std::string value, bool given, const char* meaning) {
    out.push_back({.name = name,
                   .value = std::move(value),
                   .origin = given ? Origin::option : Origin::by_default,
                   .source = given ? "DeviceOptions" : "",
                   .meaning = meaning});
  };
  add("threads", std::string(thread_modes[static_cast<size_t>(options.threads)]),
      options.threads != usual.threads, "whose thread runs the device");
  add("operation_timeout", duration_text(options.operation_timeout),
      options.operation_timeout != usual.operation_timeout,
      "a work without progress for so long ends");
  add("idle_timeout", duration_text(options.idle_timeout),
      options.idle_timeout != usual.idle_timeout,
      "a channel that nobody uses for so long is closed; 0: none");
  add("congestion", congestion, !options.congestion.empty(), "which congestion control it has");
  const Limits& limits = options.limits;
  add("limits.jetties", std::to_string(limits.jetties), limits.jetties != usual.limits.jetties,
      "Jetties and JFRs at most");
  add("limits.peers", std::to_string(limits.peers), limits.peers != usual.limits.peers,
      "other processes at most");
  add("limits.segments", std::to_string(limits.segments), limits.segments != usual.limits.segments,
      "segments at most");
}

Setting past_caches(uint64_t from) {
  const bool never = from == UINT64_MAX;
  return {.name = "past_caches_from",
          .value = never ? "never" : size_text(from),
          .origin = never ? Origin::by_default : Origin::measured,
          .source = never ? "it gains nothing here, or was not measured: no large mapped segment "
                            "was imported yet"
                          : "when the first large mapped segment was imported",
          .meaning = "works of so many bytes are copied past the caches"};
}

}  // namespace

Result<SettingList> Device::settings() {
  return guarded("settings", [&]() -> Result<SettingList> {
    if (auto able = usable(state_, "settings"); !able) return able.error();
    uint64_t past_caches_from = 0;
    state_->runner->call([&](engine::Engine& engine, Time) {
      past_caches_from = engine.statistics().past_caches_from;
      return true;
    });
    const drivers::PortFacts& facts = state_->runner->port_facts();
    SettingList out = facts.settings;
    const auto fact = [&](const char* name, bool value, const char* meaning) {
      out.push_back({name, yes_or_no(value), Origin::driver, "what the medium is", meaning});
    };
    fact("lossless", facts.lossless, "it loses nothing and keeps the order: no retransmission");
    fact("mapped_memory", facts.mapped.base != nullptr,
         "what is allocated is mapped by others here: writes and reads are copies");
    fact("virtual_time", state_->runner->simulated(), "time goes on only while somebody waits");
    if (facts.mapped.base != nullptr) out.push_back(past_caches(past_caches_from));
    add_options(out, state_->options, state_->congestion);
    if (!state_->runner->simulated()) {
      out.push_back(engine::NameFiles::directory_of_this_user());
    }
    return out;
  });
}

std::vector<DriverInfo> list_drivers() { return drivers::describe_drivers(); }

}  // namespace urma
