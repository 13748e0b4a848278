// SPDX-License-Identifier: Apache-2.0
#include "transport/ctp.h"

#include <algorithm>

#include "base/probes.h"
#include "wire/tp_headers.h"

namespace urma::transport {
namespace {

// A peer whose ring is full is slow or has stopped: it is tried in each pass at first, then at
// intervals.
constexpr Duration eager_after_full = std::chrono::microseconds(100);
constexpr Duration retry_after = std::chrono::microseconds(50);
// How often the state of the peer is read while something is outstanding.
constexpr Duration look_after = std::chrono::milliseconds(10);

}  // namespace

Ctp::Ctp(uint32_t index, const ChannelEnds& ends, const Upwards& upwards, Pools& pools,
         Counters& counters, Time now)
    : PacketChannel(index, ends, pools, counters, now),
      sink_(upwards.sink),
      ways_(upwards.ways),
      way_(upwards.ways.way_to(ends.to)),
      line_(upwards.ways.next_line(way_)) {}

std::byte* Ctp::begin(uint32_t bytes) {
  if (!may_begin()) return nullptr;
  const uint32_t all = Ctph::size + bytes;
  const bool in_line = line_ != nullptr && line_->takes(all);
  std::byte* const packet = in_line ? line_->content : ways_.begin(way_, all);
  if (packet == nullptr) return nullptr;
  in_line_ = in_line ? all : 0;
  const Ctph header{.opcode = Ctph::Opcode::packet};
  header.emit(HeaderBytes<Ctph::size>(packet, Ctph::size));
  return packet + Ctph::size;
}

void Ctp::end() {
  if (in_line_ > 0) {
    line_->send(in_line_);
    ways_.sent_line(way_, in_line_);
  } else {
    ways_.end();
  }
  ++counters_.sent;
  probes::transmit(peer_, 1);
  watch_soon();
}

std::byte* Ctp::hold(const MemoryRange& range, PreparedSegment& prepared) {
  if (paused_) return nullptr;
  // Memory does not show whether its owner is alive.
  watch_soon();
  return ways_.hold(way_, range, prepared);
}

size_t Ctp::view(std::span<ChannelView> out, Time now) const {
  if (out.empty()) return 0;
  out[0] = {.to = to_,
            .state = silent_ ? ChannelView::State::silent : ChannelView::State::up,
            .instead = ChannelView::Instead::lossless,
            .unheard = now - last_heard_,
            .not_ready = not_ready_};
  return 1;
}

void Ctp::watch_soon() {
  if (watching_ || to_watch_) return;
  to_watch_ = true;
  shared_.active.add(index_);
}

void Ctp::watch(Time now) {
  if (!outstanding()) last_heard_ = std::max(last_heard_, now);
  to_watch_ = false;
  set_watching(true);
  looked_at_ = now;
}

size_t Ctp::fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) {
  if (to_watch_) watch(now);
  if (paused_) return 0;
  if (!outstanding()) last_heard_ = std::max(last_heard_, now);
  const Pulled pulled = pull(frames, now);
  if (pulled.count == 0) return 0;
  Burst& burst = shared_.burst;
  source.write(std::span(burst.slots).first(pulled.count));
  size_t arrived = 0;
  for (size_t i = 0; i < pulled.count; ++i) {
    const PacketSlot& slot = burst.slots[i];
    const bool filler = slot.withdrawn || slot.slice == SliceRef{};
    counters_.filler += filler;
    const Ctph header{.opcode = filler ? Ctph::Opcode::filler : Ctph::Opcode::packet};
    header.emit(HeaderBytes<Ctph::size>(slot.frame->head, Ctph::size));
    slot.frame->to = to_;
    if (pulled.answers >> i & 1) shared_.delivered[arrived++] = slot.slice;
  }
  counters_.sent += pulled.count;
  if (!watching_) watch(now);
  // Packets that leave here arrive, so answers are not kept.
  if (arrived > 0) sink_.delivered(peer_, std::span(shared_.delivered).first(arrived), now);
  return pulled.count;
}

// Takes slices from the queues while the way has room for them.
Ctp::Pulled Ctp::pull(std::span<TxFrame* const> frames, Time now) {
  Burst& burst = shared_.burst;
  Pulled out;
  uint32_t requests = 0;
  bool full = false;
  while (out.count < std::min(frames.size(), Burst::capacity)) {
    const std::optional<Class> from = next_class(requests);
    if (!from) break;
    const OfferedSlice what = offered_.next_of(shared_.offered, *from);
    full = !begin_packet(*frames[out.count], what.bytes);
    if (full) break;
    offered_.take(shared_.offered, *from);
    const bool answer = *from == Class::answer;
    requests += !answer;
    out.answers |= uint64_t{answer} << out.count;
    burst.slots[out.count] = {.slice = what.slice, .frame = frames[out.count]};
    ++out.count;
  }
  // An empty packet: that the peer takes it is the sign of life.
  if (keep_alive_due_ && out.count == 0 && !frames.empty() && begin_packet(*frames[0], 0)) {
    burst.slots[out.count++] = {.slice = SliceRef{}, .frame = frames[0]};
  }
  keep_alive_due_ = false;
  note_room(full, now);
  return out;
}

bool Ctp::begin_packet(TxFrame& frame, uint32_t bytes) {
  if (!ways_.reserve(way_, bytes + header_allowance)) return false;
  frame.head_bytes = Ctph::size;
  frame.piece_count = 0;
  frame.tail_bytes = 0;
  return true;
}

void Ctp::note_room(bool full, Time now) {
  if (full && !blocked_) blocked_since_ = now;
  blocked_ = full;
  if (full) retry_at_ = now + (silent_ ? look_after : retry_after);
}

bool Ctp::wants_to_send(Time now) const {
  if (paused_) return false;
  if (keep_alive_due_) return true;
  return !offered_.empty() && (!blocked_ || now - blocked_since_ < eager_after_full);
}

// ---- time

Time Ctp::next_deadline() const {
  Time at = blocked_ && !paused_ ? retry_at_ : never;
  if (outstanding() || blocked_ || silent_) at = std::min(at, looked_at_ + look_after);
  return at;
}

std::optional<Why> Ctp::handle_timer(Time now) {
  if (!outstanding() && !blocked_ && !silent_) return std::nullopt;
  if (now < looked_at_ + look_after) return std::nullopt;
  looked_at_ = now;
  const Ways::State way = ways_.state(way_);
  if (way.no_room) return Why::no_room;
  // The process at this address has exited and will never answer.
  if (way.gone) return Why::left;
  if (way.taken != taken_) {
    taken_ = way.taken;
    last_heard_ = std::max(last_heard_, now);
  }
  set_watching(!way.empty);
  // A peer that has taken everything and owes no answer is not silent.
  const bool owes = outstanding() || blocked_;
  silent_ = owes && now >= last_heard_ + verdict_after;
  if (!owes) return std::nullopt;
  if (way.empty && now >= last_heard_ + keep_alive_after) keep_alive_due_ = true;
  return std::nullopt;
}

}  // namespace urma::transport
