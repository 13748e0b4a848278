// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "apps/common/failure.h"
#include "apps/urma_perf/plan.h"
#include "apps/urma_perf/words.h"

namespace urma::apps::perf {
namespace {

// There is room for the replies whose acknowledgements have not come yet.
constexpr uint32_t ping_pong_berths = 64;
constexpr uint32_t ping_pong_receives = 4;

uint32_t berths_for(const Case& what, Place place) {
  if (what.test->ping_pong()) return ping_pong_berths;
  return place == Place::client ? what.depth : 0;
}

uint32_t receives_for(const Case& what, Place place) {
  if (what.test->ping_pong()) return ping_pong_receives;
  return place == Place::server && what.test->told() ? 2 * what.depth : 0;
}

// The two sides have different patterns, so that a side's own bytes are not taken for those of the
// other.
Pattern pattern_of(const Case& what, Place place) {
  return Pattern(2 * what.seed + (place == Place::server ? 1 : 0));
}

Place opposite(Place place) { return place == Place::client ? Place::server : Place::client; }

}  // namespace

Side::Side(Device& device, const Case& what, Place place, std::span<Jfc* const> completions)
    : case_(what),
      place_(place),
      layout_(what),
      ours_(pattern_of(what, place)),
      theirs_(pattern_of(what, opposite(place))),
      pulse_(std::make_unique<Pulse>(device)),
      own_memory_(nullptr, &std::free),
      segment_(make_segment(device)),
      receives_(receives_for(what, place)) {
  // As under a wrapper: then all works go by packets, and are compared with the limit for packets.
  case_.own_memory = has_own_memory() ? case_.own_memory : !segment_.mapped();
  for (uint32_t i = 0; i < what.jetties; ++i) draws_.emplace_back(what.seed + i);
  touch_memory();
  make_jetties(device, completions);
}

Segment Side::make_segment(Device& device) {
  constexpr const char* what = "memory for the test";
  if (case_.gpu) {
    gpu_ = std::make_unique<GpuMemory>(*case_.gpu, layout_.bytes());
    copy_.resize(layout_.bytes());
    return must(device.register_memory(gpu_->span(), Rights::read | Rights::write), what);
  }
  constexpr Rights rights = Rights::read | Rights::write | Rights::atomic;
  if (!has_own_memory()) return must(device.allocate(layout_.bytes(), rights), what);
  constexpr size_t page = 4096;
  const size_t bytes = (layout_.bytes() + page - 1) / page * page;
  own_memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, bytes)));
  if (own_memory_ == nullptr) {
    throw Failure(Exit::error,
                  fmt::format("{}: the system refuses {} bytes. Fix: give a smaller --size or "
                              "--depth (kv: fewer --blocks), or allow more memory (ulimit -v, a "
                              "container's limit)",
                              what, bytes));
  }
  return must(device.register_memory({own_memory_.get(), bytes}, rights), what);
}

// The blocks of a plan lie in memory of the client, as those of a program that moves them. Then
// those that arrive may take all the room that a window has for segments.
bool Side::has_own_memory() const {
  return case_.own_memory || (case_.test->plan && place_ == Place::client);
}

void Side::touch_memory() {
  if (sends_data()) {
    for (uint32_t source = 0; source < layout_.sources(); ++source) {
      pulse_->in_slices(at(layout_.source_at(0, source), layout_.source_bytes()),
                        [this](std::span<std::byte> slice, size_t begin) {
                          ours_.fill(slice, begin);
                          return true;
                        });
    }
  }
  if (gets_data()) {
    pulse_->in_slices(landing(), [](std::span<std::byte> slice, size_t) {
      std::ranges::fill(slice, std::byte{0xee});  // a byte that is in neither pattern
      return true;
    });
  }
  std::ranges::fill(ledger(), never_written);
  if (gpu_) {
    pulse_->in_slices(std::span(copy_), [this](std::span<std::byte> slice, size_t begin) {
      gpu_->put(begin, slice);
      return true;
    });
  }
}

void Side::look_at(std::span<const std::byte> part) const {
  if (!gpu_) return;
  const auto offset = static_cast<size_t>(part.data() - copy_.data());
  gpu_->get(offset, std::span(copy_).subspan(offset, part.size()));
}

std::span<std::byte> Side::posted(std::span<const std::byte> part) const {
  const auto offset = static_cast<size_t>(part.data() - whole().data());
  return segment_.bytes().subspan(offset, part.size());
}

bool Side::sends_data() const {
  return case_.test->ping_pong() || (place_ == Place::client) != case_.test->reads();
}
bool Side::gets_data() const {
  return case_.test->ping_pong() || (place_ == Place::server) != case_.test->reads();
}

void Side::make_jetties(Device& device, std::span<Jfc* const> completions) {
  const uint32_t berths = berths_for(case_, place_);
  if (berths + receives_ == 0) return;  // nothing is notified, so no Jetty is needed
  for (uint32_t i = 0; i < case_.jetties; ++i) {
    jetties_.push_back(must(device.jetty({.berths = berths,
                                          .receives = receives_,
                                          .operation_timeout = {},
                                          .mode = case_.ordering.mode->mode,
                                          .chain = case_.ordering.order->chain,
                                          .completions = completions[i % completions.size()]}),
                            "a Jetty for the test"));
    if (!case_.test->sends()) continue;
    for (uint32_t slot = 0; slot < receives_; ++slot) receive(i, slot);
  }
}

SideDescription Side::describe() const {
  SideDescription out{
      .segment = segment_.descriptor(), .jetties = {}, .engines = {}, .engine_of = {}};
  std::vector<PeerId> engines;
  for (const Jetty& jetty : jetties_) {
    const RemoteJetty self = jetty.local();
    const auto known = std::ranges::find(engines, self.peer);
    const auto engine = static_cast<uint32_t>(known - engines.begin());
    if (known == engines.end()) {
      engines.push_back(self.peer);
      out.engines.push_back(jetty.descriptor());
    }
    out.jetties.emplace_back(number(self.id), number(self.token));
    out.engine_of.push_back(engine);
  }
  return out;
}

void Side::meet(Device& device, const SideDescription& other) {
  other_ = must(device.import(other.segment), "the other side's memory").segment;
  std::vector<PeerId> engines;
  for (const std::string& line : other.engines)
    engines.push_back(must(device.import(line), "the other side's Jetties").jetty.peer);
  other_jetties_.clear();
  for (size_t i = 0; i < std::min(other.jetties.size(), other.engine_of.size()); ++i) {
    const auto& [id, token] = other.jetties[i];
    const uint32_t engine = other.engine_of[i];
    if (engine >= engines.size()) break;  // then too few Jetties are found below
    other_jetties_.push_back(
        {.peer = engines[engine], .id = JettyId(id), .token = TokenValue(token)});
  }
  const bool enough = !case_.test->told() || other_jetties_.size() == case_.jetties;
  if (enough && other_.bytes >= layout_.bytes()) return;
  throw Failure(Exit::error,
                fmt::format("the other side offers {} bytes and {} Jetties, not {} and {}. Fix: "
                            "use the same urma_perf on both sides",
                            other_.bytes, other_jetties_.size(), layout_.bytes(), case_.jetties));
}

Work Side::work(uint32_t jetty, uint32_t slot, uint32_t window) const {
  Work work;
  work.operation = case_.test->operation;
  work.with_immediate = case_.test->immediate;
  work.segment = other_;
  work.order = case_.ordering.order->order;
  if (case_.test->told()) work.target = other_jetties_[jetty];
  aim(work, jetty, slot, window);
  return work;
}

void Side::aim(Work& work, uint32_t jetty, uint32_t slot_number, uint32_t window) const {
  if (case_.test->reads()) {
    const auto to = posted(slot(jetty, slot_number));
    work.buffer = {to.data(), to.size()};
    work.offset = layout_.source_at(window, any_source(jetty));
    return;
  }
  if (case_.test->atomics()) {
    work.atomic = case_.atomic->atomic;
    work.buffer = {nullptr, case_.bytes};
    work.offset = layout_.slot_at(jetty, slot_number);
    return;  // the operands are in `Words`
  }
  work.buffer = {posted(at(layout_.source_at(window), case_.bytes)).data(), case_.bytes};
  work.offset = layout_.slot_at(jetty, slot_number);
  work.immediate_value = pack(slot_number, window);
}

// Each Jetty has its own generator, because only one thread uses it.
uint32_t Side::any_source(uint32_t jetty) const {
  if (layout_.sources() == 1) return 0;
  return static_cast<uint32_t>(draws_[jetty].of(layout_.sources()));
}

void Side::beat_for(int64_t time) const {
  for (const int64_t end = now() + time; now() < end;) pulse_->beat();
}

void Side::receive(uint32_t jetty, uint32_t slot_number) {
  if (jetties_[jetty].receive(posted(slot(jetty, slot_number)), slot_number)) return;
  throw Failure(Exit::error,
                "a receive was not accepted although its slot is vacant. Fix: report "
                "this as a fault of liburma");
}

std::span<std::byte> Side::slot(uint32_t jetty, uint32_t slot_number) const {
  return at(layout_.slot_at(jetty, slot_number), case_.bytes);
}
std::span<const std::byte> Side::source() const {
  return at(layout_.source_begin(), layout_.source_bytes());
}
std::span<std::byte> Side::landing() const {
  return at(layout_.landing_begin(), layout_.landing_bytes());
}
std::span<uint64_t> Side::ledger() const {
  return {reinterpret_cast<uint64_t*>(whole().data()), layout_.ledger_bytes() / sizeof(uint64_t)};
}

void Side::check(uint32_t jetty, uint32_t slot_number, uint32_t window, Verdict& verdict) const {
  look_at(slot(jetty, slot_number));
  const std::optional<size_t> wrong = mismatch(slot(jetty, slot_number), window, 0);
  if (!wrong) return;
  verdict.count(
      fmt::format("Jetty {}, slot {}: byte {} of {} is 0x{:02x}, which is not that of "
                  "window {}",
                  jetty, slot_number, *wrong, case_.bytes,
                  std::to_integer<unsigned>(slot(jetty, slot_number)[*wrong]), window));
}

std::optional<size_t> Side::mismatch(std::span<std::byte> arrived, uint32_t window,
                                     size_t begin) const {
  std::optional<size_t> wrong;
  pulse_->in_slices(arrived, [&](std::span<std::byte> slice, size_t at) {
    wrong = theirs_.mismatch(slice, window, begin + at);
    if (wrong) *wrong += at;
    return !wrong;
  });
  return wrong;
}

// The blocks come from the client, so they are compared with the layout before they are used.
void Side::check_blocks(Verdict& verdict) const {
  look_at(std::as_bytes(ledger()));
  const auto words = ledger();
  const uint64_t window = words.front();
  if (window >= Pattern::windows) return;  // nothing was moved
  for (uint32_t i = 0; i < case_.plan.blocks; ++i) {
    const auto block = words.subspan(1 + i * Layout::words_of_block, Layout::words_of_block);
    const auto [to, from, bytes] = std::array{block[0], block[1], block[2]};
    const bool inside = to <= case_.plan.target_bytes && bytes <= case_.plan.target_bytes - to &&
                        from <= case_.plan.source_bytes && bytes <= case_.plan.source_bytes - from;
    if (!inside || from % Plan::source_alignment != 0) {
      verdict.count(
          fmt::format("block {}: {} bytes from {} to {} are not of this test", i, bytes, from, to));
      continue;
    }
    const auto arrived = at(layout_.landing_begin() + to, bytes);
    look_at(arrived);
    const auto wrong = mismatch(arrived, static_cast<uint32_t>(window), from);
    pulse_->beat();
    if (!wrong) continue;
    verdict.count(fmt::format("block {}: byte {} of {} is 0x{:02x}, which is not that of window {}",
                              i, *wrong, bytes, std::to_integer<unsigned>(arrived[*wrong]),
                              window));
  }
}

void Side::check_word(uint32_t jetty, uint32_t slot_number, uint64_t right,
                      Verdict& verdict) const {
  const uint64_t value = Words::load(slot(jetty, slot_number));
  if (right == never_written || value == right) return;
  verdict.count(fmt::format("Jetty {}, slot {}: the word is 0x{:x}, and should be 0x{:x}", jetty,
                            slot_number, value, right));
}

void Side::check_ledger(Verdict& verdict) const {
  if (case_.test->plan) return check_blocks(verdict);
  look_at(std::as_bytes(ledger()));
  for (uint32_t jetty = 0; jetty < case_.jetties; ++jetty) {
    for (uint32_t i = 0; i < layout_.slots(); ++i) {
      const uint64_t window = ledger()[size_t{jetty} * layout_.slots() + i];
      if (case_.test->atomics()) {
        check_word(jetty, i, window, verdict);
        continue;
      }
      if (window >= Pattern::windows) continue;
      check(jetty, i, static_cast<uint32_t>(window), verdict);
      pulse_->beat();  // checking many slots takes long, too
    }
  }
}

std::optional<uint32_t> Side::window_in(uint32_t jetty, uint32_t slot_number) const {
  look_at(slot(jetty, slot_number));
  return theirs_.window_of(slot(jetty, slot_number));
}

}  // namespace urma::apps::perf
