// SPDX-License-Identifier: Apache-2.0
#include "drivers/fault/fault_port.h"

#include <array>

namespace urma::drivers::fault {
namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr size_t burst = 64;

}  // namespace

// With the same faults at other times.
Result<std::unique_ptr<PacketPort>> FaultPort::beside(const Eid& eid) {
  Result<std::unique_ptr<PacketPort>> inner = inner_->beside(eid);
  if (!inner) return inner.error();
  Settings settings = settings_;
  settings.seed += ++beside_ << 32;
  return std::unique_ptr<PacketPort>(std::make_unique<FaultPort>(std::move(*inner), settings));
}

FaultPort::FaultPort(std::unique_ptr<PacketPort> inner, const Settings& settings)
    : inner_(std::move(inner)),
      settings_(settings),
      facts_(inner_->facts()),
      prng_(settings.seed),
      late_(frame_count, settings.lateness),
      storage_(size_t{buffer_count} * buffer_bytes),
      packets_(buffer_count),
      sent_(buffer_count) {
  // Only RTP recovers from these faults, and its packets are smaller.
  facts_.lossless = false;
  facts_.mapped = {};  // copies to mapped segments would bypass this port
  const uint64_t rate = settings.out.bits_per_second / 8;
  const uint64_t inner_rate = facts_.line_bytes_per_second;
  if (rate > 0) facts_.line_bytes_per_second = inner_rate > 0 ? std::min(rate, inner_rate) : rate;
  facts_.reorders = facts_.reorders || settings.out.reorders() || settings.in.reorders();
  facts_.mtu = std::min(facts_.mtu, largest_rtp_mtu);
  facts_.description += ", with faults injected";
  facts_.settings.insert(facts_.settings.end(), settings.options.begin(), settings.options.end());
  if (facts_.mtu != inner_->facts().mtu) {
    set(facts_.settings, {"mtu", size_text(facts_.mtu), Origin::driver,
                          "fault: only RTP recovers from faults, and its packets are smaller",
                          "largest payload of a packet, in bytes"});
  }
  free_.reserve(buffer_count);
  for (uint32_t i = buffer_count; i-- > 0;) free_.push_back(i);
  for (Line* line : {&out_, &in_}) {
    std::vector<Held> room;
    room.reserve(buffer_count);
    *line = Line(Later{}, std::move(room));
  }
}

FaultPort::~FaultPort() {
  inner_.reset();  // it may still read the packets in `storage_`
}

PortCounters FaultPort::counters() const {
  PortCounters counters = inner_->counters();
  counters.injected = injected_;
  return counters;
}

uint32_t FaultPort::take_buffer() {
  if (free_.empty()) return none;
  const uint32_t buffer = free_.back();
  free_.pop_back();
  return buffer;
}

// ---- outwards

size_t FaultPort::send(std::span<TxFrame* const> frames, Time now) {
  reclaim();
  size_t taken = 0;
  for (; taken < frames.size() && !late_.full(); ++taken) late_.take(frames[taken], now, prng_);
  read_due(now);
  send_due(now);
  return taken;
}

// Copies the packets that are due; their memory is not read again afterwards.
void FaultPort::read_due(Time now) {
  while (const TxFrame* frame = late_.read(now)) impair(*frame, now);
  while (TxFrame* frame = late_.settle(now)) pool_.take_back(frame);
}

void FaultPort::impair(const TxFrame& frame, Time now) {
  const Impairment::Fate fate =
      out_line_.decide(settings_.out, beginning_of(frame), frame.bytes(), now, prng_);
  const Ecn ecn = fate.arriving(frame.ecn);
  if (fate.count != 1 || ecn != frame.ecn) ++injected_;
  for (const Impairment::Copy& copy : std::span(fate.copies).first(fate.count)) {
    const uint32_t buffer = take_buffer();
    if (buffer == none) break;
    packets_[buffer] = {frame.to, static_cast<uint32_t>(frame.bytes()), frame.path, ecn, frame.cci};
    flatten(frame, bytes_of(buffer));
    if (copy.corrupt) {
      ++injected_;
      Impairment::flip_bits({bytes_of(buffer), packets_[buffer].bytes}, prng_);
    }
    hold(out_, now + copy.delay, buffer);
  }
}

void FaultPort::send_due(Time now) {
  std::array<TxFrame*, burst> frames;
  while (!out_.empty() && out_.top().at <= now) {
    const size_t lent = inner_->lend(frames);
    size_t filled = 0;
    for (; filled < lent && !out_.empty() && out_.top().at <= now; ++filled, out_.pop()) {
      const uint32_t buffer = out_.top().buffer;
      TxFrame& frame = *frames[filled];
      frame.head_bytes = frame.tail_bytes = 0;
      frame.piece_count = 1;
      frame.pieces[0] = {bytes_of(buffer), packets_[buffer].bytes};
      frame.to = packets_[buffer].peer;
      frame.path = packets_[buffer].path;
      frame.ecn = packets_[buffer].ecn;
      frame.cci = packets_[buffer].cci;
      sent_[(sent_first_ + sent_count_++) % sent_.size()] = {inner_taken_ + filled + 1, buffer};
    }
    const size_t taken = inner_->send(std::span(frames).first(filled), now);
    inner_taken_ += taken;
    // Packets that the inner port does not take now are lost, as datagrams are in a full device.
    inner_->unlend(std::span(frames).subspan(taken, lent - taken));
    for (size_t lost = filled - taken; lost > 0; --lost) {
      free_.push_back(sent_[(sent_first_ + --sent_count_) % sent_.size()].buffer);
    }
    reclaim();
    if (lent == 0 || taken < filled) return;
  }
}

void FaultPort::reclaim() {
  const uint64_t settled = inner_->settled();
  while (sent_count_ > 0 && sent_[sent_first_].until <= settled) {
    free_.push_back(sent_[sent_first_].buffer);
    sent_first_ = (sent_first_ + 1) % sent_.size();
    --sent_count_;
  }
}

void FaultPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

// ---- inwards

Time FaultPort::next_arrival() const {
  Time next = std::min(inner_->next_arrival(), late_.next());
  if (!out_.empty()) next = std::min(next, out_.top().at);
  if (!in_.empty()) next = std::min(next, in_.top().at);
  return next;
}

size_t FaultPort::receive(std::span<RxFrame> frames, Time now) {
  read_due(now);
  send_due(now);
  if (settings_.in.none()) return inner_->receive(frames, now);
  size_t count = 0;
  for (; count < frames.size() && !in_.empty() && in_.top().at <= now; in_.pop()) {
    const uint32_t buffer = in_.top().buffer;
    const Packet& packet = packets_[buffer];
    frames[count++] = {.data = bytes_of(buffer),
                       .bytes = packet.bytes,
                       .cookie = buffer,
                       .from = &packet.peer,
                       .path = packet.path,
                       .ecn = packet.ecn,
                       .cci = packet.cci,
                       .switch_queue = packet.switch_queue};
  }
  return count + take_in(frames.subspan(count), now);
}

// Receives from the inner port, and decides the fate of each packet.
size_t FaultPort::take_in(std::span<RxFrame> frames, Time now) {
  const size_t arrived = inner_->receive(frames, now);
  size_t kept = 0;
  for (size_t i = 0; i < arrived; ++i) {
    RxFrame frame = frames[i];
    const Impairment::Fate fate =
        in_line_.decide(settings_.in, {frame.data, frame.bytes}, frame.bytes, now, prng_);
    frame.ecn = fate.arriving(frame.ecn);
    const Impairment::Copy& first = fate.copies[0];
    const bool untouched = fate.count == 1 && !first.corrupt && first.delay == Duration{};
    // A datagram that is larger than any packet of UB, which any host may send. No buffer holds it,
    // so it cannot be delayed; the transport counts and drops it.
    const bool too_large = frame.bytes > buffer_bytes;
    if (untouched || (too_large && fate.count > 0)) {
      frames[kept++] = frame;
      continue;
    }
    ++injected_;
    for (const Impairment::Copy& copy : std::span(fate.copies).first(fate.count)) {
      const uint32_t buffer = take_buffer();
      if (buffer == none) break;
      packets_[buffer] = {*frame.from, frame.bytes, frame.path,
                          frame.ecn,   frame.cci,   frame.switch_queue};
      std::memcpy(bytes_of(buffer), frame.data, frame.bytes);
      if (copy.corrupt) Impairment::flip_bits({bytes_of(buffer), frame.bytes}, prng_);
      hold(in_, now + copy.delay, buffer);
    }
    inner_->release({&frame, 1});
  }
  return kept;
}

void FaultPort::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) {
    if (holds(frame)) {
      free_.push_back(frame.cookie);
    } else {
      inner_->release({&frame, 1});
    }
  }
}

}  // namespace urma::drivers::fault
