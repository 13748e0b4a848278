// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "api/handles.h"
#include "base/accelerator_memory.h"
#include "base/address_space.h"
#include "base/failed.h"
#include "base/futex.h"

namespace urma {
namespace {

constexpr size_t huge_page = 2 << 20;
constexpr size_t page = 4096;
// Allocation in a window holds its lock for microseconds; a process that holds the lock for longer
// than this has been stopped.
constexpr Duration lock_patience = std::chrono::seconds(1);

Error not_fenced_by_gpu(std::string_view call) {
  return failed(
             Status::not_fenced, call,
             ": a process has counted a copy to or from this memory of a GPU and does not continue "
             "(it is stopped, or has no processor): the copy may still be made")
      .fix("let that process continue, or end it, and call this again");
}

Error not_fenced(std::string_view call, bool handed_over) {
  if (handed_over) {
    return failed(Status::not_fenced, call,
                  ": this memory was handed to peers, and the system has no memory to replace it: "
                  "the peers may still read and write it")
        .fix("free memory or address space (ulimit -v), and call this again");
  }
  return failed(Status::not_fenced, call,
                ": a process that maps this memory was in the middle of using it and does not "
                "continue (it is stopped, or has no processor), and the pages of this memory "
                "cannot be replaced: the process may still write to it once")
      .fix("let that process continue, or end it, and call this again");
}

// Makes the error that says why a segment with this token gets no second one.
Error not_rotated(bool registered, const engine::Registrations::Segments::Token& token) {
  const auto made = guarded("rotate", [&]() -> Result<void> {
    if (!registered) {
      return Error{Status::invalid_argument,
                   "rotate: this segment was unregistered or revoked, so its token is no longer "
                   "valid. Fix: register the memory again, which draws a new token"};
    }
    if (token.chosen) {
      return Error{Status::invalid_argument,
                   "rotate: the token of this segment was chosen (SegmentOptions::token), so the "
                   "device draws no other. Fix: leave SegmentOptions::token out"};
    }
    if (!token.checked) {
      return Error{Status::invalid_argument,
                   "rotate: this segment was made with TokenPolicy::none, so no token is compared. "
                   "Fix: register the memory again with TokenPolicy::plain_text"};
    }
    return Error{Status::invalid_argument,
                 "rotate: two tokens of this segment are valid already, which is the limit. Fix: "
                 "retire the old token first (Segment::retire)"};
  });
  return made.error();
}

// Makes the error of a call after Device::close has unregistered the memory.
Error withdrawn_by_close(std::string_view call) {
  const auto made = guarded(call, [&]() -> Result<void> {
    return failed(Status::closed, call,
                  ": the device is closed, which has unregistered this memory: no peer accesses it")
        .fix("none is needed; call this before Device::close to get `ok`");
  });
  return made.error();
}

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
  // A forked child does not own the registration.
  if (state_->runner->here()) (void)state_->unregister();
}

bool Segment::State::take_memory() {
  using Taken = drivers::SegmentMemory::Taken;
  engine::Registrations::Lease lease;
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
  leave_others();
  if (of_accelerator) AcceleratorMemory::remove({base, bytes});
  if (!leased || !runner->here()) return;
  drivers::SegmentMemory* memory = nullptr;
  bool held = true;
  runner->call([&](engine::Engine& engine, Time) {
    memory = engine.port().memory();
    held = memory->held(*leased);
    return true;
  });
  // This is not done in a pass, because large segments take long. Memory that cannot be restored is
  // never allocated again.
  if (!memory->restore(*leased)) return;
  if (!held) memory->empty(*leased);
  runner->call([&](engine::Engine&, Time) {
    memory->give_back(*leased);
    return true;
  });
}

// Memory that the application may unmap is not mapped for a device, which would keep its pages.
void Segment::State::begin_reads(drivers::DeviceReads* reads) {
  if (reads == nullptr || guarded || leased || !reads->map({base, bytes}, rights)) return;
  read_by = reads;
  runner->call([&](engine::Engine&, Time) {
    reads->grant({base, bytes}, rights);
    return true;
  });
}

void Segment::State::end_reads() {
  if (read_by != nullptr) std::exchange(read_by, nullptr)->unmap({base, bytes}, rights);
}

void Segment::State::renew_reads() {
  for (State* one = token->first; one != nullptr; one = one->next) {
    drivers::DeviceReads* const reads = one->read_by;
    one->end_reads();
    one->begin_reads(reads);
  }
}

std::span<std::byte> Segment::bytes() const {
  return state_ ? std::span(state_->base, state_->bytes) : std::span<std::byte>{};
}
bool Segment::mapped() const { return state_ && state_->leased.has_value(); }
Rights Segment::rights() const { return state_ ? state_->rights : Rights::local_only; }
AtomicDomain Segment::atomics() const { return state_ ? state_->atomics : AtomicDomain::processor; }

std::string Segment::descriptor() const {
  if (!state_) return {};
  Descriptor descriptor = describe_device(state_->runner->engines());
  descriptor.segment = state_->describe();
  return to_string(descriptor);
}

Descriptor::Segment Segment::State::describe() const {
  return {.id = id,
          .token = token->newer.load(),
          .address = address(),
          .bytes = bytes,
          .rights = rights,
          .atomics = atomics};
}

// A segment that does not share its TokenID needs no lock.
std::unique_lock<std::mutex> Segment::State::lock_others() {
  if (token.use_count() == 1) return {};
  return std::unique_lock(token->mutex);
}

void Segment::State::join_others() {
  const auto lock = lock_others();
  next = token->first;
  if (next != nullptr) next->previous = this;
  token->first = this;
}

void Segment::State::leave_others() {
  if (!token || !runner->here()) return;
  const auto lock = lock_others();
  if (token->first == this) token->first = next;
  if (previous != nullptr) previous->next = next;
  if (next != nullptr) next->previous = previous;
}

Result<void> Segment::unregister() {
  if (!state_) return moved_from("unregister");
  Result<void> done = state_->unregister();
  if (done && !state_->runner->open()) return withdrawn_by_close("unregister");
  return done;
}
Result<void> Segment::revoke() {
  if (!state_) return moved_from("revoke");
  Result<void> done = state_->revoke();
  if (done && !state_->runner->open()) return withdrawn_by_close("revoke");
  return done;
}

Result<void> Segment::State::unregister() {
  if (!runner->here()) return usable(*runner, "unregister");
  const auto lock = lock_others();
  return withdraw("unregister");
}

// Revokes access to all segments before it waits for any of them. Waits again for segments that an
// earlier call withdrew and could not fence.
Result<void> Segment::State::revoke() {
  if (!runner->here()) return usable(*runner, "revoke");
  const auto lock = lock_others();
  if (!registered && !token->revoked) return withdraw("revoke");
  token->revoked = true;
  std::optional<Withdrawals> copied;
  begin_copies(copied, true);
  engine::Registrations::Withdrawal what{.segment = handle, .all = true, .own = described()};
  runner->call(
      [&](engine::Engine& engine, Time now) { return engine.registrations().withdraw(what, now); });
  const bool quiet = end_copies(copied) && what.fenced;
  Result<void> all{};
  for (State* one = token->first; one != nullptr; one = one->next) {
    one->end_reads();
    if (!one->leased) one->registered = false;
    // Which of them a peer may still access is asked for each.
    if (!quiet) one->fenced = false;
    if (auto ended = one->withdraw("revoke"); !ended) all = ended.error();
  }
  return all;
}

Result<void> Segment::State::withdraw(std::string_view call) {
  if (!registered && fenced) return {};
  registered = false;
  std::optional<Withdrawals> copied;
  begin_copies(copied, false);
  engine::Registrations::Withdrawal what{.segment = handle, .own = described()};
  drivers::SegmentMemory* memory = nullptr;
  bool handed_over = false;  // a peer was handed the memory, and it could not be replaced
  do {
    runner->call([&](engine::Engine& engine, Time now) {
      memory = engine.port().memory();
      return engine.registrations().withdraw(what, now);
    });
    // This is not done in a pass, because large segments take long.
    if (what.held) what.fenced = memory->move(*what.held);
    handed_over = handed_over || (what.held && !what.fenced && memory->loose(*what.held));
  } while (what.held);
  fenced = end_copies(copied) && what.fenced;
  end_reads();
  if (fenced) return {};
  return of_accelerator ? not_fenced_by_gpu(call) : not_fenced(call, handed_over);
}

engine::Registrations::Segments::Segment Segment::State::described_copy() const {
  engine::Registrations::Segments::Segment copy = described();
  copy.lease = engine::Registrations::Segments::none;
  return copy;
}

engine::Registrations::Segments::Added Segment::State::add_copies(
    const engine::Registrations::Segments::TokenPlan& plan,
    const engine::Registrations::Segments::Made& made, const State* with) {
  using Added = engine::Registrations::Segments::Added;
  engine::Engines& engines = runner->engines();
  Added added = Added::added;
  for (uint32_t i = 1; i < engines.count() && added == Added::added; ++i) {
    engine::Registrations::Segments::Made copy = made;
    const Handle beside = with != nullptr ? with->copies[i - 1] : Handle{};
    engines.at(i).call([&](engine::Engine& engine, Time) {
      added = engine.registrations().follow(described_copy(), plan, beside, copy);
      return true;
    });
    if (added == Added::added) copies.push_back(copy.segment);
  }
  return added;
}

// The first engine begins last: only when the others have freed a TokenID may it draw that again.
void Segment::State::begin_copies(std::optional<Withdrawals>& withdrawals, bool all) {
  if (copies.empty()) return;
  auto next = withdrawals.emplace().begin();
  for_each_copy([&](engine::Runner& other, Handle copy) {
    engine::Registrations::Withdrawal& what = *next++;
    what = {.segment = copy, .all = all, .own = described_copy()};
    other.call([&](engine::Engine& engine, Time now) {
      engine.registrations().begin(what, now);
      return true;
    });
  });
}

bool Segment::State::end_copies(std::optional<Withdrawals>& withdrawals) {
  if (!withdrawals) return true;
  bool all = true;
  auto next = withdrawals->begin();
  for_each_copy([&](engine::Runner& other, Handle) {
    engine::Registrations::Withdrawal& what = *next++;
    other.call([&](engine::Engine& engine, Time now) {
      return engine.registrations().withdraw(what, now);
    });
    all = all && what.fenced;
  });
  return all;
}

Result<TokenValue> Segment::rotate() {
  if (auto able = usable(state_, "rotate"); !able) return able.error();
  const auto lock = state_->lock_others();
  bool rotated = false;
  bool registered = true;
  engine::Registrations::Segments::Token token;
  state_->runner->call([&](engine::Engine& engine, Time) {
    rotated = engine.registrations().rotate(state_->handle);
    registered = engine.segments().root(state_->handle) != engine::Registrations::Segments::none;
    token = engine.segments().token(state_->handle);
    return true;
  });
  if (!rotated) return not_rotated(registered, token);
  state_->for_each_copy([](engine::Runner& other, Handle copy) {
    other.call([&](engine::Engine& engine, Time) {
      (void)engine.registrations().rotate(copy);
      return true;
    });
  });
  state_->token->newer = token.value;
  return token.value;
}

Result<void> Segment::retire() {
  if (auto able = usable(state_, "retire"); !able) return able.error();
  const auto lock = state_->lock_others();
  bool copies_fenced = true;
  state_->for_each_copy([&](engine::Runner& other, Handle copy) {
    engine::Registrations::Retirement one{.segment = copy};
    other.call(
        [&](engine::Engine& engine, Time now) { return engine.registrations().retire(one, now); });
    copies_fenced = copies_fenced && one.fenced;
  });
  engine::Registrations::Retirement what{.segment = state_->handle};
  state_->runner->call(
      [&](engine::Engine& engine, Time now) { return engine.registrations().retire(what, now); });
  if (what.opened) state_->renew_reads();
  if (what.fenced && copies_fenced) return {};
  return Error{
      Status::not_fenced,
      "retire: the old token is no longer valid, but a process that maps this memory was in "
      "the middle of using it and does not continue: it may still finish one copy. Fix: let "
      "that process continue, or end it, and call this again"};
}

engine::Registrations::Segments::Segment Segment::State::described() const {
  return {.base = base,
          .bytes = bytes,
          .rights = rights,
          .address = address(),
          .atomics = atomics,
          .guarded = guarded,
          .lease = leased ? leased->number : engine::Registrations::Segments::none};
}

namespace {

Result<void> examine(std::string_view call, size_t bytes, const SegmentOptions& options) {
  const auto wrong = [&](Status status, const char* why, const char* fix) {
    return failed(status, call, ": ", why).fix(fix);
  };
  if (bytes == 0) {
    return wrong(Status::invalid_argument, "a segment cannot have 0 bytes", "give 1 byte or more");
  }
  if (!is_valid(options.rights)) {
    return wrong(Status::invalid_argument, "SegmentOptions::rights has bits that are not a right",
                 "use any of Rights::read, write and atomic, or local_only");
  }
  if (!is_valid(options.atomics)) {
    return wrong(Status::invalid_argument, "SegmentOptions::atomics is not one of its values",
                 "choose AtomicDomain::processor or engine");
  }
  if (!is_valid(options.policy)) {
    return wrong(Status::invalid_argument, "SegmentOptions::policy is not one of its values",
                 "choose TokenPolicy::plain_text or none");
  }
  if (options.token && options.with != nullptr) {
    return wrong(Status::invalid_argument,
                 "SegmentOptions::token is given, but the segment shares that of "
                 "SegmentOptions::with",
                 "leave one of the two out");
  }
  if (options.atomics == AtomicDomain::device && has(options.rights, Rights::atomic)) {
    return wrong(Status::unsupported, "no device of this version executes atomics itself",
                 "choose AtomicDomain::processor or engine");
  }
  if (options.policy == TokenPolicy::signature || options.policy == TokenPolicy::encryption) {
    return wrong(Status::unsupported, "tokens that sign or encrypt are not supported",
                 "use TokenPolicy::plain_text on a trusted network (docs/security.md)");
  }
  return {};
}

// Checks whether the first and the last page may be written. Reading all mappings of the process
// takes 20 us or more, and the pages between two writable pages usually belong to the same mapping.
// For memory where they do not, there is SegmentOptions::guarded.
Result<void> examine_writable(std::span<const std::byte> memory, Rights rights) {
  if (!has(rights, Rights::write) && !has(rights, Rights::atomic)) return {};
  const std::byte* const first = memory.data();
  const std::byte* const last = first + (memory.size() - 1);
  const auto page_of = [](const std::byte* at) { return reinterpret_cast<uintptr_t>(at) / page; };
  if (may_store(first) && (page_of(first) == page_of(last) || may_store(last))) return {};
  return Error{Status::invalid_argument,
               "register_memory: the rights let peers write this memory, but this process may not "
               "write it: it is mapped read-only, or not mapped, or its file is shorter. Fix: map "
               "all of it with PROT_WRITE, or register it with Rights::read alone"};
}

Error not_of_one_accelerator() {
  return Error{
      Status::invalid_argument,
      "register_memory: the memory begins or ends in memory of an accelerator, but does not "
      "both begin and end in that of the same one. Fix: give memory of one allocation"};
}

Error no_room_for_accelerator() {
  return Error{
      Status::no_resources,
      "register_memory: memory of accelerators is noted in a table, for which this process "
      "lacks 512 MiB of address space. Fix: allow it more (ulimit -v)"};
}

// Checks what can be asked of an accelerator's memory.
Result<void> examine_accelerator(const SegmentOptions& options) {
  if (!has(options.rights, Rights::atomic)) return {};
  return Error{Status::unsupported,
               "register_memory: this is memory of an accelerator, on which the processor cannot "
               "execute atomics. Fix: leave Rights::atomic out"};
}

}  // namespace

Result<Segment> Device::allocate(size_t bytes, const SegmentOptions& options) {
  return guarded("allocate", [&]() -> Result<Segment> {
    if (auto able = usable(state_, "allocate"); !able) return able.error();
    if (auto fine = examine("allocate", bytes, options); !fine) return fine.error();
    if (options.guarded) {
      return Error{
          Status::invalid_argument,
          "allocate: guarded is for memory that the application may unmap, and the library "
          "allocates this memory itself. Fix: leave guarded out, or map memory yourself and use "
          "register_memory"};
    }
    auto segment = std::make_unique<Segment::State>();
    segment->runner = state_->runner;
    segment->bytes = bytes;
    if (segment->take_memory()) return add_segment(std::move(segment), options);
    segment->owned = Region::try_make(bytes, bytes >= huge_page ? huge_page : page);
    if (segment->owned.data() == nullptr) {
      return failed(Status::no_resources, "allocate: the system refuses ", bytes,
                    " bytes of address space")
          .fix("ask for less, or allow this process more (ulimit -v)");
    }
    if (bytes >= huge_page) segment->owned.use_huge_pages();
    segment->base = segment->owned.data();
    return add_segment(std::move(segment), options);
  });
}

Result<Segment> Device::register_memory(std::span<std::byte> memory,
                                        const SegmentOptions& options) {
  return guarded("register_memory", [&]() -> Result<Segment> {
    if (auto able = usable(state_, "register_memory"); !able) return able.error();
    if (auto fine = examine("register_memory", memory.size(), options); !fine) return fine.error();
    if (!could_be_memory(memory.data(), memory.size())) {
      return failed(Status::invalid_argument, "register_memory: no process can have ",
                    memory.size(), " bytes at address ", reinterpret_cast<uintptr_t>(memory.data()),
                    ": the address is null, or the memory ends beyond the address space")
          .fix("give memory that is mapped");
    }
    const std::optional<int> accelerator = AcceleratorMemory::owner(memory);
    if (accelerator && *accelerator < 0) return not_of_one_accelerator();
    const Result<void> fine =
        accelerator ? examine_accelerator(options) : examine_writable(memory, options.rights);
    if (!fine) return fine.error();
    auto segment = std::make_unique<Segment::State>();
    segment->base = memory.data();
    segment->bytes = memory.size();
    segment->of_accelerator = accelerator && AcceleratorMemory::add(memory, *accelerator);
    if (accelerator && !segment->of_accelerator) return no_room_for_accelerator();
    return add_segment(std::move(segment), options);
  });
}

namespace {

Error not_copied() {
  return Error{Status::no_resources,
               "registering memory: the driver of the accelerator that this memory belongs to "
               "provides no stream for copies, or this process lacks 64 MiB of address space. Fix: "
               "free memory of the accelerator, or allow this process more (ulimit -v)"};
}

Error not_added(engine::Registrations::Segments::Added why, uint32_t limit) {
  using Added = engine::Registrations::Segments::Added;
  switch (why) {
    case Added::gone:
      return Error{Status::invalid_argument,
                   "registering memory: the segment of SegmentOptions::with is revoked. Fix: name "
                   "a segment that is not revoked, or none"};
    case Added::overlaps:
      return Error{
          Status::invalid_argument,
          "registering memory: the memory overlaps a segment of the same TokenID. Fix: leave "
          "SegmentOptions::with out, or give memory that does not overlap"};
    case Added::no_guard:
      return Error{Status::no_resources,
                   "registering memory: guarded memory is copied through a pipe, for which this "
                   "process lacks two descriptors, or 64 MiB of address space. Fix: allow this "
                   "process more (ulimit -n, ulimit -v), or leave SegmentOptions::guarded out"};
    default:
      return failed(Status::no_resources, "registering memory: this device has ", limit,
                    " segments, which is its limit")
          .fix("unregister some, or open the device with a larger Limits::segments");
  }
}

}  // namespace

Result<Segment> Device::add_segment(std::unique_ptr<Segment::State> segment,
                                    const SegmentOptions& options) {
  using Added = engine::Registrations::Segments::Added;
  const Segment::State* const with = options.with != nullptr ? options.with->state_.get() : nullptr;
  if (options.with != nullptr && (with == nullptr || with->runner != state_->runner)) {
    return Error{Status::invalid_argument,
                 "registering memory: SegmentOptions::with is not a segment of this device. Fix: "
                 "name a segment of this device, or none"};
  }
  segment->runner = state_->runner;
  segment->rights = options.rights;
  segment->atomics = options.atomics;
  segment->guarded = options.guarded || segment->of_accelerator;
  segment->token = with != nullptr ? with->token : std::make_shared<Segment::State::Shared>();
  segment->copies.reserve(state_->engines().count() - 1);  // nothing may fail once a table has it
  uint32_t limit = 0;
  Added added = Added::full;
  drivers::DeviceReads* reads = nullptr;
  engine::Registrations::Segments::Made made;
  const engine::Registrations::Segments::TokenPlan plan(options.policy, options.token);
  state_->runner->call([&](engine::Engine& engine, Time) {
    reads = engine.port().device_reads();
    limit = engine.settings().limits.segments;
    added = engine.registrations().add(segment->described(), plan,
                                       with != nullptr ? with->handle : Handle{}, made);
    return true;
  });
  if (added == Added::no_guard && segment->of_accelerator) return not_copied();
  if (added != Added::added) return not_added(added, limit);
  segment->handle = made.segment;
  segment->id = made.token.id;
  segment->token->newer = made.token.value;
  segment->registered = true;
  if (added = segment->add_copies(plan, made, with); added != Added::added) {
    (void)segment->withdraw("registering memory");
    if (auto able = usable(state_, "registering memory"); !able) return able.error();
    return not_added(added, limit);
  }
  segment->begin_reads(reads);
  segment->join_others();
  return Segment(std::move(segment));
}

Result<std::vector<Quarantined>> Device::quarantined() {
  return guarded("quarantined", [&]() -> Result<std::vector<Quarantined>> {
    if (auto able = usable(state_, "quarantined"); !able) return able.error();
    std::vector<Quarantined> out(drivers::SegmentMemory::most_quarantined);
    size_t count = 0;
    state_->runner->call([&](engine::Engine& engine, Time) {
      drivers::SegmentMemory* const memory = engine.port().memory();
      count = memory != nullptr ? memory->quarantined(out) : 0;
      return true;
    });
    out.resize(count);
    return out;
  });
}

RemoteSegment Segment::local() const {
  if (!state_) return {};
  RemoteSegment remote{.peer = {},
                       .address = state_->address(),
                       .bytes = state_->bytes,
                       .token_id = state_->id,
                       .token = state_->token->newer.load(),
                       .rights = state_->rights,
                       .atomics = state_->atomics};
  if (usable(state_, "local").ok()) remote.peer = state_->runner->engines().peers().self();
  return remote;
}

}  // namespace urma
