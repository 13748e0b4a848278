#include <sys/mman.h>

#include <optional>

#include "urma/handles.h"

namespace urma {
namespace {

constexpr size_t huge_page = 2 << 20;
constexpr size_t page = 4096;

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
  // A fork's child has a copy of the memory and no part in the registration.
  if (state_->runner->here()) (void)unregister();
}

std::span<std::byte> Segment::bytes() const { return {state_->base, state_->bytes}; }
Rights Segment::rights() const { return state_->rights; }

std::string Segment::descriptor() const {
  Descriptor descriptor = describe_device(*state_->runner);
  descriptor.segment = state_->describe();
  return to_string(descriptor);
}

Descriptor::Segment Segment::State::describe() const {
  return {.id = id,
          .token = token,
          .address = reinterpret_cast<uint64_t>(base),
          .bytes = bytes,
          .rights = rights};
}

Result<void> Segment::unregister() {
  if (!state_->runner->here()) return usable(*state_->runner, "unregister");
  if (!state_->registered) return {};
  state_->registered = false;
  engine::Engine::Unregistration what{
      .id = state_->id, .base = state_->base, .bytes = state_->bytes};
  state_->runner->call(
      [&](engine::Engine& engine, Time now) { return engine.remove_segment(what, now); });
  return {};
}

Result<Segment> Device::allocate(size_t bytes, Rights rights) {
  return guarded("allocate", [&]() -> Result<Segment> {
    if (bytes == 0) return error(Status::invalid_argument, "allocate: 0 bytes were asked for");
    auto segment = std::make_unique<Segment::State>();
    segment->owned = Region::try_make(bytes, bytes >= huge_page ? huge_page : page);
    if (segment->owned.data() == nullptr) {
      return error(Status::no_resources, "allocate: the system gives no " + std::to_string(bytes) +
                                             " bytes of address space");
    }
    if (bytes >= huge_page) madvise(segment->owned.data(), bytes, MADV_HUGEPAGE);
    segment->base = segment->owned.data();
    segment->bytes = bytes;
    segment->rights = rights;
    return add_segment(std::move(segment));
  });
}

Result<Segment> Device::register_memory(std::span<std::byte> memory, Rights rights) {
  return guarded("register_memory", [&]() -> Result<Segment> {
    if (memory.empty()) {
      return error(Status::invalid_argument, "register_memory: 0 bytes were given");
    }
    auto segment = std::make_unique<Segment::State>();
    segment->base = memory.data();
    segment->bytes = memory.size();
    segment->rights = rights;
    return add_segment(std::move(segment));
  });
}

Result<Segment> Device::add_segment(std::unique_ptr<Segment::State> segment) {
  if (auto able = usable(*state_->runner, "registering memory"); !able) return able.error();
  segment->runner = state_->runner;
  uint32_t limit = 0;
  std::optional<TokenId> id;
  state_->runner->call([&](engine::Engine& engine, Time) {
    limit = engine.settings().limits.segments;
    segment->token = TokenValue(engine.entropy().next32());
    id = engine.add_segment({.base = segment->base,
                             .bytes = segment->bytes,
                             .token = segment->token,
                             .rights = segment->rights});
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
                       .address = reinterpret_cast<uint64_t>(state_->base),
                       .bytes = state_->bytes,
                       .token_id = state_->id,
                       .token = state_->token,
                       .rights = state_->rights};
  if (usable(*state_->runner, "local").ok()) remote.peer = state_->runner->self();
  return remote;
}

}  // namespace urma
