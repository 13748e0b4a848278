// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "api/handles.h"
#include "base/address_space.h"
#include "base/assert.h"
#include "base/failed.h"
#include "base/prefetch.h"

namespace urma {
namespace {

constexpr uint32_t most_berths = 32 * 1024;
constexpr uint32_t most_weight = 16;

Result<void> examine_id(std::string_view call, std::optional<JettyId> id) {
  if (!id || (*id >= first_user_jetty && number(*id) < id_limit)) return {};
  return failed(Status::invalid_argument, call, ": id is ", number(*id), ", which is out of range")
      .fix("choose ", number(first_user_jetty), " to ", id_limit - 1, ", or leave it out");
}

Result<void> examine(const JettyOptions& options) {
  if (options.receives_from != nullptr && options.receives > 0) {
    return failed(Status::invalid_argument, "jetty: receives is ", options.receives,
                  ", but receives_from names a Jfr, whose receives the Jetty uses")
        .fix("leave receives at 0, and make the Jfr with as many receives as all its Jetties need");
  }
  if (options.weight < 1 || options.weight > most_weight) {
    return failed(Status::invalid_argument, "jetty: weight is ", options.weight,
                  ", which is out of range")
        .fix("choose 1 to ", most_weight);
  }
  if (!is_valid(options.mode)) {
    return Error{Status::invalid_argument,
                 "jetty: mode is not a valid ServiceMode. Fix: choose ServiceMode::automatic, "
                 "initiator, target or unreliable"};
  }
  if (options.operation_timeout != Duration{} && !may_time_out_after(options.operation_timeout)) {
    return Error{Status::invalid_argument,
                 "jetty: operation_timeout is neither zero nor within 10 ms to 1 h. Fix: choose a "
                 "value from 10 ms to 1 h, or zero to use that of the device"};
  }
  if (options.receiver_timeout < Duration{}) {
    return Error{Status::invalid_argument,
                 "jetty: receiver_timeout is negative. Fix: choose zero or more, or "
                 "Duration::max() for no limit"};
  }
  if (options.mode == ServiceMode::unreliable && options.chain) {
    return Error{Status::invalid_argument,
                 "jetty: chain needs an order, and ServiceMode::unreliable keeps none. Fix: leave "
                 "chain out, or choose another mode"};
  }
  if (options.inline_bytes > max_inline_bytes) {
    return failed(Status::invalid_argument, "jetty: inline_bytes is ", options.inline_bytes,
                  ", more than a berth can hold")
        .fix("choose 0 to ", max_inline_bytes);
  }
  for (const auto& [name, value] :
       {std::pair("berths", options.berths), std::pair("receives", options.receives)}) {
    if (value <= most_berths) continue;
    return failed(Status::invalid_argument, "jetty: ", name, " is ", value,
                  ", which is out of range")
        .fix("choose 0 to ", most_berths);
  }
  if (options.berths + options.receives == 0 && options.receives_from == nullptr) {
    return Error{Status::invalid_argument,
                 "jetty: berths and receives are 0, so the Jetty could neither send nor receive. "
                 "Fix: choose at least 1 for one of them"};
  }
  return {};
}

Error no_entries(std::string_view call, const urma::jetty::Jfc& jfc, uint32_t entries) {
  return failed(Status::no_resources, call, ": its completion queue has ", jfc.depth(),
                " entries, of which ", jfc.reserved(), " are reserved, and the new object needs ",
                entries, " (berths + 2 * receives)")
      .fix("make the queue with a depth of ", jfc.reserved() + entries,
           ", or poll it, which releases the entries of destroyed Jetties");
}

// A Jetty can use only a completion queue and a JFR of its own device, because only one engine may
// write each of them.
Error foreign(std::string_view call, std::string_view what) {
  return failed(Status::invalid_argument, call, ": its ", what,
                " belongs to another device, or was moved from")
      .fix("make one with this device's ", what, "()");
}

Error id_in_use(std::string_view call, JettyId id) {
  return failed(Status::address_in_use, call, ": this device has a Jetty with the number ",
                number(id), " already")
      .fix("choose another number, or leave it out");
}

// The number of a Jetty says to which engine of its device peers send, and each engine draws its
// own numbers.
Error id_with_engines(std::string_view call) {
  return failed(Status::unsupported, call,
                ": a Jetty of a device with several engines has no chosen number")
      .fix("leave the id out, or engines= of the device");
}

urma::jetty::Timeouts timeouts_of(const JettyOptions& options, const engine::Runner& runner) {
  const bool own = options.operation_timeout > Duration{};
  return {.operation = own ? options.operation_timeout : runner.operation_timeout(),
          .receiver = options.receiver_timeout};
}

urma::jetty::Ordering ordering_of(const JettyOptions& options) {
  return {.mode = options.mode,
          .chain = options.chain,
          .in_order = options.in_order,
          .suspend_on_error = options.suspend_on_error,
          .weight = static_cast<uint8_t>(options.weight),
          .urgent = options.urgent};
}

urma::jetty::JettyParts parts_of(const JettyOptions& options,
                                 const std::shared_ptr<urma::jetty::Queues>& queues,
                                 const engine::Runner& runner) {
  urma::jetty::JettyParts parts(queues, timeouts_of(options, runner));
  parts.ordering = ordering_of(options);
  parts.immediates_take_receives = options.immediates_take_buffers;
  return parts;
}

}  // namespace

Jetty::Jetty(std::unique_ptr<State> state) : state_(std::move(state)) {}
Jetty::Jetty(Jetty&&) noexcept = default;
Jetty& Jetty::operator=(Jetty&& other) noexcept {
  Jetty old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Jetty::~Jetty() {
  if (!state_ || !state_->runner().here()) return;
  state_->runner().call([&](engine::Engine& engine, Time now) {
    return engine.jetty_control().destroy(state_->made.handle.index, now);
  });
}

Result<Jetty> Device::jetty(const JettyOptions& options) {
  return guarded("jetty", [&]() -> Result<Jetty> {
    if (auto able = usable(state_, "jetty"); !able) return able.error();
    if (auto fine = examine(options); !fine) return fine.error();
    return make_jetty("jetty", options);
  });
}

// A JFR is a Jetty that posts nothing.
Result<Jfr> Device::jfr(const JfrOptions& options) {
  return guarded("jfr", [&]() -> Result<Jfr> {
    if (auto able = usable(state_, "jfr"); !able) return able.error();
    if (options.receives == 0 || options.receives > most_berths) {
      return failed(Status::invalid_argument, "jfr: receives is ", options.receives,
                    ", which is out of range")
          .fix("choose 1 to ", most_berths);
    }
    auto made = make_jetty("jfr", {.berths = 0,
                                   .receives = options.receives,
                                   .immediates_take_buffers = options.immediates_take_buffers,
                                   .inline_bytes = 0,
                                   .completions = options.completions,
                                   .id = options.id,
                                   .token = options.token});
    if (!made) return made.error();
    return Jfr(std::move(*made));
  });
}

Result<std::shared_ptr<engine::Runner>> Device::State::choose_engine(
    std::string_view call, const CompletionSource* completes,
    const CompletionSource* receives) const {
  if (completes != nullptr && receives != nullptr && completes->runner != receives->runner) {
    return failed(Status::invalid_argument, call,
                  ": its jfc and its jfr belong to different engines of the device")
        .fix("let the jfr complete into that jfc, or the Jetty into a queue of its own");
  }
  if (completes != nullptr) return completes->runner;
  if (receives != nullptr) return receives->runner;
  return engines().next();
}

// `group`: how the group chooses, if one is to be made.
Result<Jetty> Device::make_jetty(std::string_view call, const JettyOptions& options,
                                 std::optional<GroupPolicy> group) {
  const auto ours = [&](const auto& object) {
    return object.state_ != nullptr &&
           &object.state_->source.runner->engines() == &state_->engines();
  };
  if (auto fine = examine_id(call, options.id); !fine) return fine.error();
  const Jfr* const jfr = options.receives_from;
  if (options.completions != nullptr && !ours(*options.completions)) return foreign(call, "jfc");
  if (jfr != nullptr && !ours(jfr->jetty_)) return foreign(call, "jfr");
  if (options.id && state_->engines().count() > 1) return id_with_engines(call);
  const auto berths = static_cast<uint16_t>(options.berths);
  const auto receives = static_cast<uint16_t>(options.receives);
  auto chosen = state_->choose_engine(
      call, options.completions != nullptr ? &options.completions->state_->source : nullptr,
      jfr != nullptr ? &jfr->jetty_.state_->source : nullptr);
  if (!chosen) return chosen.error();
  auto state = std::make_unique<Jetty::State>();
  state->source.runner = std::move(*chosen);
  engine::Runner& runner = state->runner();
  if (options.completions != nullptr) {
    const auto& shared = options.completions->state_->jfc;
    state->queues =
        std::make_shared<urma::jetty::Queues>(berths, receives, shared, options.inline_bytes);
    const uint32_t entries = state->queues->entries();
    if (!shared->reserve(entries)) return no_entries(call, *shared, entries);
  } else {
    state->queues = urma::jetty::Queues::with_own_jfc(berths, receives, options.inline_bytes);
  }
  urma::jetty::Jfc& jfc = state->queues->jfc();
  state->source.jfc = &jfc;
  urma::jetty::JettyParts parts = parts_of(options, state->queues, runner);
  if (options.mode == ServiceMode::unreliable)
    state->queues->jfs().only_datagrams(datagram_bytes());
  if (jfr != nullptr) parts.receives_from = jfr->jetty_.state_->made.handle;
  urma::jetty::Groups::Map::node_type entry;  // made here, because a pass does not allocate
  if (group) entry = urma::jetty::Groups::entry(*group);
  uint32_t limit = 0;
  bool used = false;
  std::optional<engine::JettyControl::Made> made;
  runner.call([&](engine::Engine& engine, Time) {
    limit = engine.settings().limits.jetties;
    used = options.id && engine.transactions().jetties().used(*options.id);
    if (used) return true;
    engine::JettyControl& control = engine.jetty_control();
    const engine::JettyControl::Chosen wanted{options.id, options.token};
    made = group ? control.create_group(std::move(parts), wanted, std::move(entry))
                 : control.create(std::move(parts), wanted);
    return true;
  });
  if (!made) {
    jfc.unreserve(state->queues->entries());
    if (used) return id_in_use(call, *options.id);
    return failed(Status::no_resources, call, ": this device has ", limit,
                  " Jetties and JFRs, which is its limit")
        .fix("destroy some, or open the device with a larger Limits::jetties");
  }
  state->made = *made;
  return Jetty(std::move(state));
}

namespace {

// Prefetches the first cache lines of a read while the work is posted. The processor prefetches the
// rest by itself, because they are read in sequence.
void fetch_ahead(const drivers::MappedMemory& mapped, const Work& work) {
  constexpr size_t line = 64;
  constexpr size_t most = 16 * line;
  if (!work.buffers.empty() && work.buffers.data() == nullptr) return;
  const size_t bytes =
      std::min(most, work.buffers.empty() ? work.buffer.bytes : work.buffers[0].bytes);
  const std::byte* const begin = mapped.at(work.segment.address + work.offset);
  for (const std::byte* at = begin; at < begin + bytes; at += line) {
    prefetch_to_read(at);
  }
}

// Posts buffers if they are in a range that a process can have. `state` is the state of the Jetty.
constexpr auto post_receive = [](const auto& state, std::span<const Buffer> buffers, uint64_t tag) {
  if (!state) [[unlikely]]
    return false;
  const engine::Runner& runner = state->runner();
  return runner.here() && runner.open() && state->queues->receive(buffers, tag) == 1;
};

}  // namespace

size_t Jetty::post(std::span<const Work> works) {
  if (!state_ || works.data() == nullptr) [[unlikely]]
    return 0;
  const engine::Runner& runner = state_->runner();
  if (!runner.takes_fast_path() || !runner.open()) [[unlikely]]
    return state_->post_slowly(works);
  return state_->post(works);
}

// Posts to a device that is closed or profiled, or in a forked child.
size_t Jetty::State::post_slowly(std::span<const Work> works) {
  if (!runner().here() || !runner().open()) return 0;
  URMA_ASSERT(runner().profiler() != nullptr, "calls of other devices take the fast path");
  engine::CallTimer timer(*runner().profiler());
  const size_t taken = post(works);
  timer.ended(Stage::post);
  return taken;
}

[[gnu::always_inline]] inline size_t Jetty::State::post(std::span<const Work> works) {
  engine::Runner& runner = this->runner();
  if (const drivers::MappedMemory& mapped = runner.port_facts().mapped;
      mapped.base != nullptr && mapped.in_a_row) {
    for (const Work& work : works) {
      if (work.operation == Operation::read && work.segment.mapped()) fetch_ahead(mapped, work);
    }
  }
  if (runner.renames_peers()) [[unlikely]]
    return post_renamed(works);
  return runner.post(made.handle.index, *queues, works);
}

// Renames the peers of works, a few at a time, and posts them. The room for them is not
// initialised: that would take as long as a work.
size_t Jetty::State::post_renamed(std::span<const Work> works) {
  constexpr size_t most = 16;
  static_assert(std::is_trivially_destructible_v<Work>);
  size_t taken = 0;
  while (taken < works.size()) {
    alignas(Work) std::byte room[most * sizeof(Work)];
    Work* const inner = reinterpret_cast<Work*>(room);
    const size_t count = std::min(most, works.size() - taken);
    for (size_t i = 0; i < count; ++i)
      new (inner + i)
          Work(runner().engines().peers().inner(runner(), made.handle.index, works[taken + i]));
    const size_t now =
        runner().post(made.handle.index, *queues, std::span(std::launder(inner), count));
    taken += now;
    if (now < count) break;
  }
  return taken;
}

bool Jetty::receive(std::span<std::byte> buffer, uint64_t tag) {
  if (!could_be_memory(buffer.data(), buffer.size())) [[unlikely]]
    return false;
  const Buffer one{buffer.data(), buffer.size()};
  return post_receive(state_, std::span(&one, 1), tag);
}

bool Jetty::receive(std::span<const Buffer> buffers, uint64_t tag) {
  if (buffers.size() > max_buffers || (!buffers.empty() && buffers.data() == nullptr)) return false;
  for (const Buffer& buffer : buffers) {
    if (!could_be_memory(buffer.data, buffer.bytes)) return false;
  }
  return post_receive(state_, buffers, tag);
}

size_t Jetty::poll(std::span<Completion> out) {
  return state_ ? state_->source.poll(out) : poll_moved(out);
}
std::span<const Completion> Jetty::wait(Duration limit) {
  if (!state_) return {&end_of_moved, 1};
  return state_->source.wait(limit, state_->queues->jfs().waited());
}
Result<int> Jetty::fd() {
  if (!state_) return moved_from("fd");
  return state_->source.fd(jetty::Queues::jfc_of(state_->queues));
}
bool Jetty::arm(Wake wake) { return state_ && state_->source.arm(wake); }
uint32_t Jetty::vacant_berths() const { return state_ ? state_->queues->vacant_berths() : 0; }
uint32_t Jetty::vacant_receives() const { return state_ ? state_->queues->vacant_receives() : 0; }

Result<void> Jetty::flush() {
  if (auto able = usable(state_, "flush"); !able) return able.error();
  state_->runner().call([&](engine::Engine& engine, Time now) {
    return engine.jetty_control().flush(state_->made.handle.index, now);
  });
  return {};
}

Result<void> Jetty::suspend() {
  if (auto able = usable(state_, "suspend"); !able) return able.error();
  state_->runner().call([&](engine::Engine& engine, Time now) {
    return engine.jetty_control().suspend(state_->made.handle.index, now);
  });
  return {};
}

Result<void> Jetty::reset() {
  if (auto able = usable(state_, "reset"); !able) return able.error();
  state_->runner().call([&](engine::Engine& engine, Time now) {
    engine.jetty_control().reset(state_->made.handle.index, now);
    return true;
  });
  return {};
}

JettyId Jetty::id() const { return state_ ? state_->made.id : JettyId{}; }

std::string Jetty::descriptor() const {
  if (!state_) return {};
  Descriptor descriptor = describe_device(state_->runner().engines());
  descriptor.jetty = state_->describe();
  return to_string(descriptor);
}

RemoteJetty Jetty::local() const {
  if (!state_) return {};
  RemoteJetty remote{.peer = {}, .id = state_->made.id, .token = state_->made.token};
  if (usable(state_, "local").ok()) remote.peer = state_->runner().engines().peers().self();
  return remote;
}

}  // namespace urma
