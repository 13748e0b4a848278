// SPDX-License-Identifier: Apache-2.0
#include "drivers/impairment.h"

#include "base/bits.h"

namespace urma::drivers {
namespace {

// The fields of the RTPH (docs/protocol.md, section 3) that the impairment reads.
constexpr size_t rtph_bytes = 16;
constexpr unsigned data_opcode = 1;
constexpr uint32_t psn_half = 1 << 23;
constexpr uint32_t psn_mask = (1 << 24) - 1;

struct Kind {
  std::string_view name;
  Impairment::Only only;
};
constexpr Kind kinds[] = {{"all", Impairment::Only::all},
                          {"data", Impairment::Only::data},
                          {"acks", Impairment::Only::acks},
                          {"first", Impairment::Only::first},
                          {"last", Impairment::Only::last}};

}  // namespace

void Impairment::read_options(OptionReader& options, const std::string& prefix) {
  options.fraction(prefix + "loss", loss, {"packets that are lost"});
  options.fraction(prefix + "dup", duplicate, {"packets that arrive twice"});
  options.fraction(prefix + "corrupt", corrupt, {"packets of which 1 to 64 bits are flipped"});
  options.fraction(prefix + "reorder", reorder, {"packets that are delayed by reorder_by"});
  options.duration(prefix + "delay", delay, {"the delay of every packet"});
  options.duration(prefix + "jitter", jitter, {"the largest additional delay, which is random"});
  options.duration(prefix + "reorder_by", reorder_by, {"the delay of these packets"});
  std::string name = "all";
  options.text(prefix + "only", name, {"which packets are lost: all, data, acks, first or last"});
  const auto* kind = std::find_if(std::begin(kinds), std::end(kinds),
                                  [&](const Kind& one) { return one.name == name; });
  if (kind == std::end(kinds)) {
    options.refuse(prefix + "only", "all, data, acks, first or last");
  } else {
    only = kind->only;
  }
  options.fraction(prefix + "burst", burst, {"packets at which a burst of losses begins"});
  options.number(prefix + "burst_length", burst_length, {"packets in a burst, on average"});
  if (burst_length == 0) options.refuse(prefix + "burst_length", "1 packet or more");
  options.fraction(prefix + "replay", replay, {"packets of which another copy arrives much later"});
  options.duration(prefix + "replay_by", replay_by, {"the delay of these copies"});
  options.duration(prefix + "hole_after", hole_after,
                   {"the time after the first packet from which on no packet arrives"});
  options.duration(prefix + "hole_for", hole_for,
                   {"for how long no packet arrives; 0s: packets always arrive"});
  options.bit_rate(prefix + "rate", bits_per_second, {"the rate of the line", "unlimited"});
  options.size(prefix + "queue", queue_bytes, 16 << 10, 1 << 30,
               {"the most bytes that wait for the line; further ones are lost"});
  options.size(prefix + "mark", mark_bytes, 1, 1 << 30,
               {"with more bytes waiting, further packets are marked CE, if ECN allows", "never"});
  if (mark_bytes > 0 && bits_per_second == 0) {
    options.object(prefix + "mark",
                   "no packet waits, because the line has no rate. Fix: give one too, such as " +
                       prefix + "rate=1Gbit");
  } else if (mark_bytes >= queue_bytes) {
    options.object(prefix + "mark",
                   "the queue is not longer than this, so packets are lost before they are marked. "
                   "Fix: lower " +
                       prefix + "mark, or give a larger " + prefix + "queue");
  }
}

// Returns whether Impairment::only exempts this packet from losses.
bool ImpairedLine::exempt(const Impairment& impairment, std::span<const std::byte> packet) {
  using Only = Impairment::Only;
  if (impairment.only == Only::all) return false;
  const bool data =
      packet.size() >= rtph_bytes && (static_cast<unsigned>(packet[0]) & 0x7f) == data_opcode;
  const bool setup = packet.empty() || packet[0] == std::byte{0};
  if (impairment.only == Only::data) return !data;
  if (impairment.only == Only::acks) return data || setup;
  if (!data) return true;
  const auto channel = static_cast<uint32_t>(load_be<3>(packet.data() + 5));
  const auto psn = static_cast<uint32_t>(load_be<3>(packet.data() + 9));
  const auto slice = static_cast<uint32_t>(load_be<3>(packet.data() + 13));
  Flow& flow = flows_[channel % flows];
  const bool known = flow.channel == channel;
  const uint32_t ahead = (psn - flow.psn) & psn_mask;
  if (known && (ahead == 0 || ahead >= psn_half)) return true;
  const bool first = !known || slice != flow.slice;
  flow = {.channel = channel, .psn = psn, .slice = slice};
  const bool last = static_cast<unsigned>(packet[0]) >> 7 != 0;
  return impairment.only == Only::first ? !first : !last;
}

bool ImpairedLine::in_hole(const Impairment& impairment, Time now) {
  if (impairment.hole_for == Duration{}) return false;
  if (!begun_) begun_at_ = now;
  begun_ = true;
  const Time from = begun_at_ + impairment.hole_after;
  return now >= from && now < from + impairment.hole_for;
}

bool ImpairedLine::in_burst(const Impairment& impairment, Prng& prng) {
  if (impairment.burst == 0) return false;
  burst_ = burst_ ? !prng.chance(1 / static_cast<double>(impairment.burst_length))
                  : prng.chance(impairment.burst);
  return burst_;
}

Impairment::Fate ImpairedLine::decide(const Impairment& impairment,
                                      std::span<const std::byte> packet, uint64_t bytes, Time now,
                                      Prng& prng) {
  const bool spared = exempt(impairment, packet);
  Duration wait{};
  bool marked = false;
  if (impairment.bits_per_second > 0) {
    // A lost packet occupies the line as well.
    constexpr double ns_and_bits = 8e9;
    const auto length = [&](uint64_t of) {
      return Duration(static_cast<int64_t>(static_cast<double>(of) * ns_and_bits /
                                           static_cast<double>(impairment.bits_per_second)));
    };
    const Time from = std::max(busy_until_, now);
    if (from - now > length(impairment.queue_bytes)) return {};
    marked = impairment.mark_bytes > 0 && from - now > length(impairment.mark_bytes);
    busy_until_ = from + length(bytes);
    wait = busy_until_ - now;
  }
  const bool lost = in_burst(impairment, prng) || in_hole(impairment, now);
  if (lost && !spared) return {};
  Impairment::Fate fate = impairment.decide(prng, spared);
  fate.marked = marked;
  for (Impairment::Copy& copy : std::span(fate.copies).first(fate.count)) copy.delay += wait;
  return fate;
}

}  // namespace urma::drivers
