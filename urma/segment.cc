#include <optional>

#include "urma/handles.h"

namespace urma {
namespace {

constexpr size_t huge_page = 2 << 20;
constexpr size_t page = 4096;
// Somebody else takes memory there; who takes longer was stopped.
constexpr Duration lock_patience = std::chrono::seconds(1);

}  // namespace

Segment::Segment(std::unique_ptr<State> state) : state_(std::move(state)) {}
Segment::Segment(Segment&&) noexcept = default;
Segment& Segment::operator=(Segment&& other) noexcept {
  Segment old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Segment::~Segment() {
  if (!state_) return;
  // The child of a fork has no part in the registration.
  if (state_->runner->here()) (void)unregister();
}

// Memory of the medium's, which others map. False: it has none, or no room.
bool Segment::State::take_memory() {
  using Taken = drivers::SegmentMemory::Taken;
  engine::Engine::Lease lease;
  drivers::SegmentMemory* memory = nullptr;
  bool taken = false;
  Time give_up = never;
  runner->call([&](engine::Engine& engine, Time now) {
    if (give_up == never) give_up = now + lock_patience;
    memory = engine.port().memory();
    const Taken answer = memory != nullptr ? memory->take(bytes, lease) : Taken::no_room;
    taken = answer == Taken::taken;
    return answer != Taken::not_now || now >= give_up;
  });
  if (!taken) return false;
  leased = lease;
  base = lease.base;
  if (memory->prepare(lease)) return true;
  runner->call([&](engine::Engine&, Time) {
    memory->give_back(lease);
    return true;
  });
  leased.reset();
  return false;
}

Segment::State::~State() {
  if (!leased || !runner->here()) return;
  drivers::SegmentMemory* memory = nullptr;
  bool held = true;
  runner->call([&](engine::Engine& engine, Time) {
    memory = engine.port().memory();
    held = memory->held(*leased);
    return true;
  });
  // Not in a pass: large ones take long.
  if (!held) memory->empty(*leased);
  runner->call([&](engine::Engine&, Time) {
    memory->give_back(*leased);
    return true;
  });
}

std::span<std::byte> Segment::bytes() const { return {state_->base, state_->bytes}; }
bool Segment::mapped() const { return state_->leased.has_value(); }
Rights Segment::rights() const { return state_->rights; }
AtomicDomain Segment::atomics() const { return state_->atomics; }

std::string Segment::descriptor() const {
  Descriptor descriptor = describe_device(*state_->runner);
  descriptor.segment = state_->describe();
  return to_string(descriptor);
}

Descriptor::Segment Segment::State::describe() const {
  return {.id = id,
          .token = token,
          .address = address(),
          .bytes = bytes,
          .rights = rights,
          .atomics = atomics};
}

Result<void> Segment::unregister() {
  if (!state_->runner->here()) return usable(*state_->runner, "unregister");
  if (!state_->registered && state_->fenced) return {};
  engine::Engine::Unregistration what{.id = state_->id,
                                      .base = state_->base,
                                      .bytes = state_->bytes,
                                      .lease = state_->leased ? &*state_->leased : nullptr,
                                      .begun = !std::exchange(state_->registered, false)};
  state_->runner->call(
      [&](engine::Engine& engine, Time now) { return engine.remove_segment(what, now); });
  state_->fenced = what.fenced;
  if (what.fenced) return {};
  return Error{Status::not_fenced,
               "unregister: a process that maps this segment was in the middle of using it, and "
               "does not go on (it is stopped, or has no processor): it may still write there when "
               "it does. Fix: let it go on, or end it, and ask again"};
}

Result<Segment> Device::allocate(size_t bytes, Rights rights, AtomicDomain atomics) {
  return guarded("allocate", [&]() -> Result<Segment> {
    if (bytes == 0) {
      return Error{Status::invalid_argument,
                   "allocate: 0 bytes were asked for. Fix: ask for 1 at least"};
    }
    auto segment = std::make_unique<Segment::State>();
    segment->runner = state_->runner;
    segment->bytes = bytes;
    segment->rights = rights;
    segment->atomics = atomics;
    if (auto able = usable(*state_->runner, "allocate"); !able) return able.error();
    if (segment->take_memory()) return add_segment(std::move(segment));
    segment->owned = Region::try_make(bytes, bytes >= huge_page ? huge_page : page);
    if (segment->owned.data() == nullptr) {
      return Error{Status::no_resources, "allocate: the system gives no " + std::to_string(bytes) +
                                             " bytes of address space. Fix: ask for less, or "
                                             "allow this process more (ulimit -v)"};
    }
    if (bytes >= huge_page) segment->owned.use_huge_pages();
    segment->base = segment->owned.data();
    return add_segment(std::move(segment));
  });
}

Result<Segment> Device::register_memory(std::span<std::byte> memory, Rights rights,
                                        AtomicDomain atomics) {
  return guarded("register_memory", [&]() -> Result<Segment> {
    if (memory.empty()) {
      return Error{Status::invalid_argument,
                   "register_memory: 0 bytes were given. Fix: give memory of 1 at least"};
    }
    auto segment = std::make_unique<Segment::State>();
    segment->base = memory.data();
    segment->bytes = memory.size();
    segment->rights = rights;
    segment->atomics = atomics;
    return add_segment(std::move(segment));
  });
}

Result<Segment> Device::add_segment(std::unique_ptr<Segment::State> segment) {
  if (auto able = usable(*state_->runner, "registering memory"); !able) return able.error();
  segment->runner = state_->runner;
  const engine::Engine::Lease* const lease = segment->leased ? &*segment->leased : nullptr;
  uint32_t limit = 0;
  std::optional<TokenId> id;
  state_->runner->call([&](engine::Engine& engine, Time) {
    limit = engine.settings().limits.segments;
    segment->token = TokenValue(engine.entropy().next32());
    id = engine.add_segment({.base = segment->base,
                             .bytes = segment->bytes,
                             .token = segment->token,
                             .rights = segment->rights,
                             .address = segment->address(),
                             .atomics = segment->atomics},
                            lease);
    return true;
  });
  if (!id) {
    return Error{Status::no_resources,
                 "this device has all " + std::to_string(limit) +
                     " segments that it was opened for. Fix: unregister some, or open it with a "
                     "larger Limits::segments"};
  }
  segment->id = *id;
  segment->registered = true;
  return Segment(std::move(segment));
}

RemoteSegment Segment::local() const {
  RemoteSegment remote{.peer = {},
                       .address = state_->address(),
                       .bytes = state_->bytes,
                       .token_id = state_->id,
                       .token = state_->token,
                       .rights = state_->rights,
                       .atomics = state_->atomics};
  if (usable(*state_->runner, "local").ok()) remote.peer = state_->runner->self();
  return remote;
}

}  // namespace urma
