// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>

#include "api/handles.h"
#include "base/failed.h"
#include "congestion/controller.h"
#include "drivers/driver.h"
#include "engine/configuration.h"
#include "engine/device_counters.h"
#include "engine/engine_places.h"
#include "engine/retransmission_choice.h"

namespace urma {
namespace {

constexpr Duration least_idle = std::chrono::milliseconds(1);
constexpr Duration most_idle = std::chrono::hours(24);
constexpr Limits most = {.jetties = 1'000'000, .peers = 65'536, .segments = 1 << 20};

Result<void> examine_choices(const DeviceOptions& options) {
  const auto not_one_of = [](const char* what, const char* values) {
    return failed(Status::invalid_argument, "open: ", what, " is not one of its values")
        .fix(values);
  };
  if (!is_valid(options.threads)) {
    return not_one_of("threads", "choose Threads::automatic, served or inlined");
  }
  if (options.balance && !is_valid(*options.balance)) {
    return not_one_of("balance", "choose Balance::slice or packet");
  }
  if (!is_valid(options.log.level)) {
    return not_one_of("log.level", "choose LogLevel::error, warning, info or debug");
  }
  return {};
}

Result<void> examine(const DeviceOptions& options) {
  if (!may_time_out_after(options.operation_timeout)) {
    return Error{Status::invalid_argument,
                 "open: operation_timeout is not within 10 ms to 1 h. Fix: choose a value from 10 "
                 "ms to 1 h"};
  }
  if (auto fine = examine_choices(options); !fine) return fine;
  const bool idle_ends = options.idle_timeout != Duration{};
  if (idle_ends && (options.idle_timeout < least_idle || options.idle_timeout > most_idle)) {
    return Error{Status::invalid_argument,
                 "open: idle_timeout is neither zero nor within 1 ms to 24 h. Fix: choose a value "
                 "from 1 ms to 24 h, or zero, which keeps all channels"};
  }
  if (options.log.per_second < 1 || options.log.per_second > 10) {
    return Error{Status::invalid_argument,
                 "open: log.per_second is not within 1 to 10. Fix: choose a value from 1 to 10"};
  }
  const Limits& limits = options.limits;
  if (limits.jetties == 0 || limits.jetties > most.jetties || limits.peers == 0 ||
      limits.peers > most.peers || limits.segments == 0 || limits.segments > most.segments) {
    return Error{Status::invalid_argument,
                 "open: a value of Limits is out of range. Fix: choose jetties from 1 to 1000000, "
                 "peers from 1 to 65536, segments from 1 to 1048576"};
  }
  return {};
}

Result<const congestion::ControllerKind*> controller(const std::string& name) {
  if (name.empty()) return &congestion::controllers().front();
  if (const auto* kind = congestion::find_controller(name)) return kind;
  std::string names;
  for (const auto& kind : congestion::controllers()) {
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  return failed(Status::invalid_argument, "open: there is no congestion control \"", name, "\"")
      .fix("use one of ", names);
}

// Returns how switches have to read the hints of packets of this congestion control; `none` if it
// sends no hints.
congestion::Metering hints_of(const congestion::ControllerKind& kind) {
  switch (kind.needs) {
    case congestion::Needs::increases:
      return congestion::Metering::increases;
    case congestion::Needs::rates:
      return congestion::Metering::rates;
    default:
      return congestion::Metering::none;
  }
}

// Fails if the switches of the port misread the requests of this congestion control.
Result<void> examine_switches(const drivers::PortFacts& port,
                              const congestion::ControllerKind& kind) {
  using congestion::Metering;
  const Metering hints = hints_of(kind);
  if (hints == Metering::none || may_pass(hints, port.metering)) return {};
  if (port.metering == Metering::other) {
    return failed(Status::unsupported, "the switches of this device do not all answer ", kind.name)
        .fix("start each of them with the same --cc, and with this version of liburma");
  }
  const std::string_view other = hints == Metering::rates ? "caqm_w" : "caqm_r";
  return failed(Status::unsupported, kind.name, " asks for ",
                hints == Metering::rates ? "rates" : "increases",
                ", and the switch has the port meters of ", other, ", which would misread that")
      .fix("use ", other, ", or start the switch with --cc ", kind.name);
}

// Fails if the congestion control cannot be used over this port. The peers' ports must carry the
// same signals, which each channel finds out when it is made.
Result<void> examine_signals(const congestion::ControllerKind& kind,
                             const drivers::PortFacts& port) {
  if (kind.needs == congestion::Needs::nothing || port.lossless) return {};
  if (auto read = examine_switches(port, kind); !read) return read.error();
  if (kind.needs == congestion::Needs::rates) return {};  // its guard needs delays alone
  if (kind.needs == congestion::Needs::increases) {
    if (port.carries.cci) return {};
    return failed(Status::unsupported, kind.name,
                  " needs switches that grant increases, which are reached over link(SWITCH):udp: "
                  "only")
        .fix("use caqm_r, or ldcp if packets carry ECN marks");
  }
  if (port.carries.ecn) return {};
  return failed(Status::unsupported, kind.name, " needs ECN marks, which the device does not carry")
      .fix("open it with ecn=yes, as in udp:?ecn=yes");
}

// Returns the message of `examine_signals`, or an empty text if it did not fail.
std::string missing_signals(const congestion::ControllerKind& kind,
                            const drivers::PortFacts& port) {
  const Result<void> examined = examine_signals(kind, port);
  return examined ? std::string() : examined.error().message;
}

// Returns the congestion control that takes the place of one that cannot be used over the port: for
// one that asks switches, the one that they answer; else the one that reads ECN marks; else, for
// one that asks switches, the one that reads delays; or else the default one, which reacts to loss
// alone.
const congestion::ControllerKind* replacement_of(const congestion::ControllerKind& kind,
                                                 const drivers::PortFacts& port) {
  const bool asks = hints_of(kind) != congestion::Metering::none;
  if (asks && port.carries.cci) {
    for (const congestion::ControllerKind& other : congestion::controllers()) {
      if (hints_of(other) == port.metering) return &other;
    }
  }
  if (port.carries.ecn) return congestion::find_controller("ldcp");
  if (asks && may_pass(congestion::Metering::rates, port.metering)) {
    return congestion::find_controller("caqm_r");
  }
  return &congestion::controllers().front();
}

// Removes an option that any device may have and no driver knows, and returns it, or nothing if it
// is absent.
std::optional<drivers::DeviceString::Option> take_option(drivers::DeviceString& device,
                                                         std::string_view key) {
  const auto named = [&](const auto& option) { return option.key == key; };
  const auto found = std::find_if(device.options.begin(), device.options.end(), named);
  if (found == device.options.end()) {
    return device.inner ? take_option(*device.inner, key) : std::nullopt;
  }
  drivers::DeviceString::Option option = *found;
  device.options.erase(found);
  return option;
}
std::optional<std::string> take_retransmit(drivers::DeviceString& device) {
  if (auto option = take_option(device, "retransmit")) return option->value;
  return std::nullopt;
}

// Removes the option `engines=`, and returns its value.
Result<uint32_t> take_engines(drivers::DeviceString& device) {
  const auto option = take_option(device, "engines");
  if (!option) return 1;
  uint32_t count = 0;
  const char* const end = option->value.data() + option->value.size();
  const auto [stop, failure] = std::from_chars(option->value.data(), end, count);
  if (failure == std::errc{} && stop == end && count >= 1 && count <= most_engines) return count;
  return drivers::device_error(
      device, option->value_offset,
      "engines must be 1 to " + std::to_string(most_engines) +
          ". Fix: use as many as threads that poll, and no more than there are processors");
}

// Adds what the user chose and the program did not: the congestion control, and the capture.
// `state`: the Device::State.
void add_choices(const engine::UserSettings& user, auto& state) {
  if (const Setting* const control = user.chosen("congestion");
      control != nullptr && state.options.congestion.empty()) {
    state.user_congestion = *control;
    state.options.congestion = control->value;
  }
  if (const Setting* const capture = user.chosen("capture")) state.user_capture = *capture;
}

// Returns an error of opening a device, and the setting of the user if it is about the capture.
Error of_capture(const Error& error, const std::optional<Setting>& user) {
  if (!user || error.message.find(user->value + "/") == error.message.npos) return error;
  const std::string what = error.message.substr(0, error.message.find(". Fix: "));
  return failed(error.status, user->source, ": ", what)
      .fix("set it to a directory where this user may write files");
}

// Adds a capture to the device, in the directory that the user chose. Each capture is a file of its
// own.
Result<void> add_capture(drivers::DeviceString& device, const std::optional<Setting>& user,
                         uint32_t engines) {
  if (!user) return {};
  if (engines > 1) {
    return failed(Status::unsupported, user->source,
                  ": a device with several engines cannot be captured")
        .fix("leave out engines in the device string, or this setting");
  }
  static std::atomic<uint64_t> number = 0;
  drivers::DeviceString out;
  out.text = device.text;
  out.name = "pcap";
  out.options.push_back({.key = "file",
                         .value = user->value + "/" + program_invocation_short_name + "-" +
                                  std::to_string(getpid()) + "-" + std::to_string(++number) +
                                  ".pcapng"});
  out.inner = std::make_unique<drivers::DeviceString>(std::move(device));
  device = std::move(out);
  return {};
}

// Secrets come from the kernel, except in a simulated network, where one seed determines
// everything.
std::unique_ptr<Entropy> entropy_for(drivers::PacketPort& port) {
  if (port.clock() != nullptr) return std::make_unique<SeededEntropy>(port.clock()->seed());
  return std::make_unique<SecureEntropy>();
}

// The ports of a device, one for each engine, and what was drawn for all of them.
struct Opened {
  std::vector<std::unique_ptr<drivers::PacketPort>> ports;
  std::unique_ptr<Entropy> entropy;
  Incarnation life{};
};

Result<Opened> open_ports(const drivers::DeviceString& device, uint32_t engines, Threads threads) {
  if (engines > 1 && threads == Threads::inlined) {
    return Error{Status::invalid_argument,
                 "open: with Threads::inlined an engine runs while its own Jetties are polled, so "
                 "engines whose Jetties are not polled would not answer. Fix: use "
                 "Threads::automatic or served, or leave out engines"};
  }
  Result<std::unique_ptr<drivers::PacketPort>> first = drivers::open_port(device);
  if (!first) return first.error();
  Opened out;
  out.entropy = entropy_for(**first);
  out.life = Incarnation(out.entropy->next() | 1);
  out.ports.push_back(std::move(*first));
  const drivers::PortFacts& facts = out.ports.front()->facts();
  while (out.ports.size() < engines) {
    const auto number = static_cast<uint32_t>(out.ports.size());
    const Eid eid = engine::eid_of_engine(facts.eid, number, facts.self);
    Result<std::unique_ptr<drivers::PacketPort>> next = out.ports.front()->beside(eid);
    if (!next) {
      const Error& why = next.error();
      return Error{why.status, "open: engine " + std::to_string(number + 1) + ": " + why.message};
    }
    if (!may_reach(facts.self.address, (*next)->facts().self.address)) {
      return Error{Status::io_error,
                   "open: the file of the window was replaced by another one meanwhile. Fix: open "
                   "the device again"};
    }
    out.ports.push_back(std::move(*next));
  }
  return out;
}

Result<Retransmission> retransmission(const DeviceOptions& options,
                                      const std::optional<std::string>& named,
                                      const drivers::PortFacts& port) {
  Retransmission mode = engine::retransmission_for(port);
  if (named) {
    const NamedRetransmission* found = find_retransmission(*named);
    if (found == nullptr) {
      std::string names;
      for (const NamedRetransmission& one : named_retransmissions()) {
        names += (names.empty() ? "" : ", ") + std::string(one.name);
      }
      return failed(Status::invalid_argument, "open: there is no retransmission mode \"", *named,
                    "\"")
          .fix("use one of ", names);
    }
    mode = found->mode;
  }
  if (options.retransmission) mode = *options.retransmission;
  const std::string why = engine::objection(mode, port);
  if (!why.empty()) {
    return Error{Status::invalid_argument,
                 "open: retransmission " + std::string(name(mode)) + ": " + why};
  }
  return mode;
}

std::string describe(const Retransmission& mode, const drivers::PortFacts& port, bool chosen) {
  if (port.lossless && !chosen) return "";
  const std::string warning = chosen ? engine::warning(mode, port) : "";
  return ", retransmission " + std::string(name(mode)) +
         (warning.empty() ? "" : " (warning: " + warning + ")");
}

// Returns the device string that another process of this host opens in order to reach a device that
// was opened as `opened` and has the address `self`.
std::string device_to_reach(const drivers::DeviceString& opened, const Eid& self) {
  if (opened.inner && is_switched(self) && !opened.address.empty()) {
    return opened.name + "(" + opened.address +
           "):" + device_to_reach(*opened.inner, ipv4(0, 0, 0, 0));
  }
  if (opened.inner) return device_to_reach(*opened.inner, self);
  if (in_window(self)) return opened.name + ":" + opened.address;
  const bool v4 = Endpoint{self, 0}.is_ipv4();
  return v4 ? opened.name + ":" : opened.name + ":[" + to_string(self) + "]";
}

// The congestion control that was asked for, the one that is used, and why they differ.
struct Control {
  std::string asked;
  std::string_view used;
  std::string why;
};

// Makes the logs of a device's engines, which call the application one at a time.
class Logs {
 public:
  Logs(const LogOptions& options, std::string_view device, size_t engines)
      : options_(options), device_(device) {
    if (engines == 1 || !options_.call) return;
    options_.call = [call = options.call,
                     turn = std::make_shared<std::mutex>()](const LogLine& line) {
      const std::lock_guard lock(*turn);
      call(line);
    };
  }
  // Returns null if the device does not log.
  std::unique_ptr<engine::Log> of_engine() const {
    return options_.call ? std::make_unique<engine::Log>(options_, device_) : nullptr;
  }

 private:
  LogOptions options_;
  std::string device_;
};

// Makes the page on which other processes see this device. `number` is unique to the device.
Result<engine::StatsFile> page_for(std::string_view text, const drivers::PortFacts& facts,
                                   const Control& control, uint64_t number) {
  ObservedDevice device = engine::this_process();
  device.device = text;
  device.description = facts.description;
  device.endpoint = to_string(facts.self);
  device.eid = to_string(facts.eid);
  device.congestion = control.asked;
  device.congestion_used = control.used;
  device.congestion_why = control.why;
  device.metrics = engine::device_metrics(facts);
  return engine::StatsFiles::of_this_user().publish(device, number);
}

// Adds the counters of a further engine. It has the same segments, so these are not added.
void add_engine(Statistics& sum, const Statistics& one) {
  for (const Metric& metric : all_metrics()) {
    const bool same =
        metric.value == &Statistics::segments || metric.value == &Statistics::past_caches_from;
    if (!same) sum.*metric.value += one.*metric.value;
  }
}

Profile sum_of(const Profile& one, const Profile& other) {
  Profile sum = other;
  for (size_t i = 0; i < sum.stages.size(); ++i) {
    sum.stages[i].times += one.stages[i].times;
    sum.stages[i].total += one.stages[i].total;
    sum.stages[i].long_times += one.stages[i].long_times;
    sum.stages[i].long_total += one.stages[i].long_total;
  }
  return sum;
}

// Returns the limits of each engine. The engines of a device know one another.
Limits limits_of_each(Limits limits, size_t engines) {
  if (engines > 1) limits.peers += static_cast<uint32_t>(engines);
  return limits;
}

// Makes the engines of a device, each with a port. `state`: the Device::State, which is complete
// but for `runner`; `unseen` is set in it if other processes cannot see the counters.
std::vector<std::unique_ptr<engine::Runner>> make_runners(Opened opened,
                                                          const congestion::ControllerKind& used,
                                                          const Retransmission& mode, auto& state) {
  const DeviceOptions& options = state.options;
  auto& ports = opened.ports;
  std::unique_ptr<Entropy> entropy = std::move(opened.entropy);
  const uint64_t key = entropy->next();
  engine::EngineSettings settings{
      .life = opened.life,
      .operation_timeout = options.operation_timeout,
      .idle_timeout = options.idle_timeout,
      .controller = &used,
      .retransmission = mode,
      .balance = options.balance.value_or(ports.front()->facts().balance),
      .limits = limits_of_each(options.limits, ports.size()),
      .profile = options.profile,
      .events = options.events,
      .segment_key = {key, entropy->next()}};
  const Control control{options.congestion, used.name, state.no_signals};
  const Logs logs(options.log, state.text, ports.size());
  std::vector<std::unique_ptr<engine::Runner>> runners;
  for (std::unique_ptr<drivers::PacketPort>& port : ports) {
    std::optional<engine::StatsFile> page;
    if (options.observable && port->clock() == nullptr) {
      Result<engine::StatsFile> made =
          page_for(state.text, port->facts(), control, SecureEntropy().next());
      if (made) page = std::move(*made);
      if (!made) state.unseen = made.error().message;
    }
    std::unique_ptr<engine::Log> log = logs.of_engine();
    settings.jetty_ids = {static_cast<uint32_t>(runners.size()),
                          static_cast<uint32_t>(ports.size())};
    if (entropy == nullptr) entropy = std::make_unique<SecureEntropy>();
    runners.push_back(std::make_unique<engine::Runner>(std::move(port), settings, options.threads,
                                                       std::move(entropy)));
    if (page || log != nullptr) {
      runners.back()->report_to(
          std::make_unique<engine::Reporter>(std::move(page), std::move(log)));
    }
  }
  return runners;
}

}  // namespace

Error no_memory(std::string_view call) {
  try {
    return failed(Status::no_resources, call, ": the system refuses more memory to this process")
        .fix(
            "release memory, or allow this process more (ulimit -v, a container's memory limit, "
            "vm.overcommit_memory)");
  } catch (const std::bad_alloc&) {
    return {Status::no_resources, {}};
  }
}

Result<void> usable(const engine::Runner& runner, std::string_view call) {
  if (runner.here() && runner.open()) return {};
  const Status why = runner.here() ? Status::closed : Status::forked;
  return guarded(call, [&]() -> Result<void> {
    return failed(why, call,
                  why == Status::closed ? ": the device is closed"
                                        : ": this is a child of the process that opened the device")
        .usual_fix();
  });
}

Error moved_from(std::string_view call) {
  const auto made = guarded(call, [&]() -> Result<void> {
    return failed(Status::closed, call, ": this object was moved from")
        .fix("call the object that it was moved to");
  });
  return made.error();
}

Descriptor describe_device(const engine::Engines& engines) {
  const engine::Runner& runner = engines.at(0);
  const std::vector<Endpoint> places = runner.paths().endpoints();
  Descriptor descriptor;
  descriptor.at = places.front();
  descriptor.eid = runner.port_facts().eid;
  descriptor.life = runner.life();
  descriptor.also.assign(places.begin() + 1, places.end());
  descriptor.engines = engines.further_places();
  return descriptor;
}

Result<Device> open(std::string_view text, const DeviceOptions& options) {
  return guarded("open", [&] { return Device::make(text, options); });
}

Result<Device> Device::make(std::string_view text, const DeviceOptions& options) {
  if (auto fine = examine(options); !fine) return fine.error();
  const Result<engine::UserSettings> user = engine::read_user_settings();
  if (!user) return user.error();
  auto state = std::make_unique<Device::State>();
  state->text = text;
  state->options = options;
  add_choices(*user, *state);
  Result<const congestion::ControllerKind*> kind = controller(state->options.congestion);
  if (!kind && state->user_congestion) {
    return Error{kind.status(), state->user_congestion->source + ": " + kind.error().message};
  }
  if (!kind) return kind.error();
  if (!SecureEntropy::available()) {
    return Error{Status::permission_denied,
                 "open: the system gives this process no random numbers for its tokens. Fix: allow "
                 "getrandom, which a seccomp filter may forbid, or use Linux 3.17 or newer"};
  }
  Result<drivers::DeviceString> parsed = drivers::parse_device_string(text);
  if (!parsed) return parsed.error();
  const std::optional<std::string> named = take_retransmit(*parsed);
  const Result<uint32_t> engines = take_engines(*parsed);
  if (!engines) return engines.error();
  if (auto added = add_capture(*parsed, state->user_capture, *engines); !added) {
    return added.error();
  }
  Result<Opened> opened = open_ports(*parsed, *engines, options.threads);
  if (!opened) return of_capture(opened.error(), state->user_capture);
  const drivers::PortFacts facts = opened->ports.front()->facts();
  const Result<Retransmission> mode = retransmission(options, named, facts);
  if (!mode) return mode.error();
  engine::configure_log(state->options.log, *user);
  state->no_signals = missing_signals(**kind, facts);
  const congestion::ControllerKind* const used =
      state->no_signals.empty() ? *kind : replacement_of(**kind, facts);
  state->congestion = used->name;
  state->chosen = describe(*mode, facts, named || options.retransmission);
  if (!state->no_signals.empty()) {
    state->chosen += ", congestion " + state->congestion + " (warning: " + state->no_signals + ")";
  }
  if (*engines > 1) state->chosen += ", " + std::to_string(*engines) + " engines";
  state->reach = device_to_reach(*parsed, facts.self.address);
  auto runners = make_runners(std::move(*opened), *used, *mode, *state);
  const Limits limits = limits_of_each(options.limits, *engines);
  state->runner = std::make_shared<engine::Engines>(std::move(runners), limits)->runner(0);
  Result<void> started;
  state->for_each_runner([&](engine::Runner& runner) {
    if (started) started = runner.start();
  });
  if (!started) return started.error();
  return Device(std::move(state));
}

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&& other) noexcept {
  Device old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Device::~Device() { close(); }

void Device::close() {
  if (!state_) return;
  if (!state_->runner->here()) {
    for (auto& [name, held] : state_->published) held.abandon();
    return;
  }
  {
    const std::lock_guard lock(state_->published_mutex);
    state_->published.clear();
  }
  state_->engines().close();
}

Endpoint Device::endpoint() const {
  return state_ ? state_->runner->port_facts().self : Endpoint{};
}
std::vector<Endpoint> Device::endpoints() const {
  return state_ ? state_->runner->paths().endpoints() : std::vector<Endpoint>{};
}
uint32_t Device::datagram_bytes() const {
  if (!state_) return 0;
  return std::min(state_->runner->port_facts().mtu, transport::most_datagram_bytes);
}
Eid Device::eid() const { return state_ ? state_->runner->port_facts().eid : Eid{}; }
std::string Device::description() const {
  if (!state_) return {};
  const std::string unseen =
      state_->unseen.empty() ? "" : "; urma_stat does not show this device: " + state_->unseen;
  return state_->text + ": " + state_->runner->port_facts().description + state_->chosen + unseen;
}

Result<std::vector<Path>> Device::paths(PeerId peer) {
  return guarded("paths", [&]() -> Result<std::vector<Path>> {
    if (auto able = usable(state_, "paths"); !able) return able.error();
    std::array<Path, most_paths> paths;
    std::optional<size_t> count;
    state_->engines().peers().namer(peer).call([&](engine::Engine& engine, Time) {
      count = paths_to(engine, engine::PeerAliases::name_there(peer), paths);
      return true;
    });
    if (!count) {
      return Error{Status::invalid_argument,
                   "paths: the peer has exited or restarted, or is not known to this device. Fix: "
                   "import the peer's descriptor again"};
    }
    return std::vector<Path>(paths.begin(), paths.begin() + static_cast<ptrdiff_t>(*count));
  });
}

Result<Endpoint> Device::endpoint(PeerId peer) const {
  return guarded("endpoint", [&]() -> Result<Endpoint> {
    if (auto able = usable(state_, "endpoint"); !able) return able.error();
    std::optional<Endpoint> place;
    state_->engines().peers().namer(peer).call([&](engine::Engine& engine, Time) {
      const auto facts = engine.transport().facts(engine::PeerAliases::name_there(peer));
      if (facts) place = facts->at;
      return true;
    });
    if (place) return *place;
    return Error{Status::invalid_argument,
                 "endpoint: the peer has exited or restarted, or is not known to this device. Fix: "
                 "import the peer's descriptor again"};
  });
}

Result<Endpoint> Device::add_path(std::string_view device) {
  return guarded("add_path", [&]() -> Result<Endpoint> {
    if (auto able = usable(state_, "add_path"); !able) return able.error();
    return state_->runner->paths().add(device);
  });
}

Result<void> Device::remove_path(const Endpoint& place) {
  return guarded("remove_path", [&]() -> Result<void> {
    if (auto able = usable(state_, "remove_path"); !able) return able.error();
    return state_->runner->paths().remove(place);
  });
}

std::vector<CongestionChoice> Device::congestion_choices() const {
  std::vector<CongestionChoice> out;
  if (!state_) return out;
  const drivers::PortFacts& port = state_->runner->port_facts();
  for (const congestion::ControllerKind& kind : congestion::controllers()) {
    CongestionChoice& choice = out.emplace_back(
        CongestionChoice{.name = std::string(kind.name), .summary = std::string(kind.summary)});
    choice.why = port.lossless ? std::string(drivers::PortFacts::lossless_text)
                               : missing_signals(kind, port);
    choice.used = port.lossless        ? "none"
                  : choice.why.empty() ? kind.name
                                       : replacement_of(kind, port)->name;
  }
  return out;
}

Result<Statistics> Device::stats() {
  if (auto able = usable(state_, "stats"); !able) return able.error();
  Statistics out;
  state_->for_each_runner([&](engine::Runner& runner) {
    Statistics one;
    runner.call([&](engine::Engine& engine, Time) {
      one = statistics_of(engine);
      return true;
    });
    &runner == state_->runner.get() ? void(out = one) : add_engine(out, one);
  });
  return out;
}

// The times are read in a pass, so that no stage of a pass is included in part.
Result<Profile> Device::profile() {
  if (auto able = usable(state_, "profile"); !able) return able.error();
  engine::Profiler* const profiler = state_->runner->profiler();
  if (profiler == nullptr) {
    return Error{Status::invalid_argument,
                 "profile: this device does not time its stages. Fix: open it with "
                 "DeviceOptions::profile = true"};
  }
  Profile out;
  state_->for_each_runner([&](engine::Runner& runner) {
    Profile one;
    runner.call([&](engine::Engine&, Time) {
      one = runner.profiler()->read();
      return true;
    });
    out = &runner == state_->runner.get() ? one : sum_of(out, one);
  });
  return out;
}

}  // namespace urma
