// SPDX-License-Identifier: Apache-2.0
#include "drivers/link/link_port.h"

#include <poll.h>

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/flat_map.h"

namespace urma::drivers::link {
namespace {

constexpr Duration patience = std::chrono::seconds(2);
// If the network reports that no program is there.
constexpr Duration least_patience = std::chrono::milliseconds(300);
constexpr unsigned least_mtu_log2 = 10;
constexpr unsigned most_mtu_log2 = 13;

// Returns the load-balance factor of a packet: one number for each channel. UTP packets, which have
// no TPNs, share one.
uint8_t lbf_of(std::span<const std::byte> head) {
  constexpr size_t tpns_at = 2, tpns_bytes = 6;  // in RTPH (UB 4.2)
  if (head.size() < tpns_at + tpns_bytes) return 0;
  return static_cast<uint8_t>(mix_bits(load_be<tpns_bytes>(head.data() + tpns_at)) >> 56);
}

// A port that wakes no thread is polled this often.
constexpr Duration polled_every = std::chrono::milliseconds(1);

uint8_t log2_of(uint32_t mtu) { return static_cast<uint8_t>(std::bit_width(mtu) - 1); }

void sleep_at(std::span<const int> descriptors, Time now, Time until) {
  std::array<pollfd, PacketPort::most_descriptors> watched;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    watched[i] = {.fd = descriptors[i], .events = POLLIN, .revents = 0};
  }
  if (descriptors.empty()) until = std::min(until, now + polled_every);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
  poll(watched.data(), descriptors.size(), static_cast<int>(std::max<int64_t>(left.count(), 0)));
}

// Why the switch refuses a device that was attached before.
std::string_view why_no_longer(LinkRefusal why) {
  switch (why) {
    case LinkRefusal::taken:
      return "another device has attached to the switch with this one's CNA. Fix: give each "
             "device a CNA of its own (link(SWITCH,cna=N)), and open this one again";
    case LinkRefusal::no_port:
      return "the switch was restarted, and has no port left for this device. Fix: start it with "
             "more (urma_switch --ports, --cnas)";
    case LinkRefusal::elsewhere:
      return "the switch was restarted, and this device's CNA now belongs to another switch. Fix: "
             "open this device again, or start the switch with the CNAs that it had (urma_switch "
             "--cnas)";
    case LinkRefusal::none:
      break;
  }
  return "the switch refuses this device for a reason that this version does not know. Fix: use "
         "the same version of liburma at both ends";
}

Error why_refused(LinkRefusal why, uint32_t cna, const Endpoint& at) {
  const std::string here = "link: the switch at " + to_string(at);
  switch (why) {
    case LinkRefusal::taken:
      return {Status::address_in_use,
              here + " has another device with the CNA " + std::to_string(cna) +
                  ". Fix: leave cna= out, or end that device; the switch forgets a device that was "
                  "killed after its lease (see: urma_switch --lease)"};
    case LinkRefusal::no_port:
      return {Status::no_resources,
              here +
                  " has no port or no CNA left. Fix: start it with more (urma_switch --ports, "
                  "--cnas)"};
    case LinkRefusal::elsewhere:
      return {
          Status::invalid_argument,
          here + " has no device with the CNA " + std::to_string(cna) +
              ", which belongs to another switch. Fix: leave cna= out, or take one of those that "
              "the switch was given (urma_switch --cnas)"};
    case LinkRefusal::none:
      break;
  }
  return {Status::version_mismatch,
          here +
              " refuses this device for a reason that this version does not know. Fix: use the "
              "same version of liburma at both ends"};
}

}  // namespace

Result<std::unique_ptr<PacketPort>> LinkPort::open(std::unique_ptr<PacketPort> inner,
                                                   const Settings& settings) {
  std::unique_ptr<LinkPort> port(new LinkPort(std::move(inner), settings, read_clock()));
  if (auto attached = port->attach(); !attached) return attached.error();
  port->disarm();
  port->fill_facts(settings);
  return std::unique_ptr<PacketPort>(std::move(port));
}

LinkPort::LinkPort(std::unique_ptr<PacketPort> inner, const Settings& settings, Time now)
    : inner_(std::move(inner)),
      switch_(settings.at),
      service_level_(settings.service_level),
      per_packet_(settings.per_packet),
      facts_(inner_->facts()),
      attachment_(
          {.cna = settings.cna, .mtu_log2 = log2_of(facts_.mtu), .nonce = SecureEntropy().next()},
          now),
      received_(most_received) {
  free_.reserve(most_received);
  for (uint32_t i = most_received; i-- > 0;) free_.push_back(i);
}

Result<void> LinkPort::attach() {
  const Time begun = read_clock();
  for (Time now = begun; now < begun + patience; now = read_clock()) {
    std::array<RxFrame, burst> frames;
    arm();
    release(std::span(frames).first(receive(frames, now)));
    if (attachment_.state() == Attachment::State::attached) return {};
    if (attachment_.state() == Attachment::State::refused) {
      return why_refused(attachment_.refusal(), attachment_.cna(), switch_);
    }
    if (inner_->counters().unreachable > 0 && now > begun + least_patience) break;
    sleep_at(descriptors(), now, std::min(next_arrival(), begun + patience));
  }
  return Error{Status::peer_unreachable, "link: no switch answers at " + to_string(switch_) +
                                             ". Fix: start it (urma_switch " + to_string(switch_) +
                                             "), or name the address at which it runs"};
}

void LinkPort::fill_facts(const Settings& settings) {
  const uint32_t own = facts_.mtu;
  const unsigned log2 = std::clamp<unsigned>(attachment_.mtu_log2(), least_mtu_log2, most_mtu_log2);
  facts_.mtu = std::min(own, uint32_t{1} << log2);
  facts_.self = {cna_address(attachment_.cna()), ub_port};
  facts_.eid = facts_.self.address;
  facts_.reorders = facts_.reorders || settings.per_packet;
  facts_.scheduling_delay = std::max(facts_.scheduling_delay, settings.most_late);
  facts_.carries = {.ecn = facts_.carries.ecn, .cci = true, .lbf = true, .vl = true};
  facts_.metering = attachment_.metering();
  const uint64_t inner_rate = facts_.line_bytes_per_second, rate = attachment_.bytes_per_second();
  if (rate > 0) facts_.line_bytes_per_second = inner_rate > 0 ? std::min(rate, inner_rate) : rate;
  facts_.description = "CNA " + std::to_string(attachment_.cna()) + " of the switch at " +
                       to_string(switch_) + ", over " + facts_.description;
  SettingList& all = facts_.settings;
  all.insert(all.end(), settings.options.begin(), settings.options.end());
  const bool asked = settings.cna != 0;
  set(all, {"address", to_string(facts_.self), asked ? Origin::device_string : Origin::drawn,
            asked ? "link.cna" : "the switch chose the CNA", "where peers reach this device"});
  set(all,
      {"eid", to_string(facts_.eid), Origin::driver, "the address", "the identity of this device"});
  if (facts_.mtu != own) {
    set(all, {"mtu", size_text(facts_.mtu), Origin::driver, "link: what the switch can forward",
              "largest payload of a packet, in bytes"});
  }
}

LinkPort::~LinkPort() {
  const bool ours = attachment_.state() == Attachment::State::attached && !abandoned_;
  if (ours) send_message(attachment_.farewell(), read_clock());
}

void LinkPort::abandon() {
  abandoned_ = true;
  inner_->abandon();
}

PortCounters LinkPort::counters() const {
  PortCounters counters = inner_->counters();
  counters.frames_sent -= std::min<uint64_t>(messages_sent_, counters.frames_sent);
  counters.frames_received -= std::min(not_packets_, counters.frames_received);
  counters.malformed += malformed_;
  counters.send_failures += refused_;
  if (attachment_.state() == Attachment::State::refused) {
    counters.failure_text = why_no_longer(attachment_.refusal());
  }
  return counters;
}

// ---- outwards

// Writes the packet into a frame of the inner port, behind its head. Everything that lies in the
// engine's frame is copied, unless the headers are too long for the inner frame.
//
// The ports of a switch that was restarted with another meter would take hints for something else.
// Packets then ask for nothing, so that switches set no S in them and their senders read delays.
void LinkPort::put_head(const TxFrame& from, TxFrame& to) {
  const std::span<std::byte> head(to.head, TxFrame::head_room);
  LinkWord{.per_packet = per_packet_}.emit(head.first<LinkWord::size>());
  Cna24Nth{.source = attachment_.cna(),
           .destination = is_switched(from.to.address) ? cna_of(from.to.address) : 0,
           .cci = attachment_.metering() == facts_.metering ? from.cci : uint16_t{0},
           .lbf = lbf_of(beginning_of(from)),
           .service_level = service_level_}
      .emit(head.subspan<LinkWord::size, Cna24Nth::size>());
  to.head_bytes = link_head_bytes;
  to.piece_count = 0;
  if (link_head_bytes + from.head_bytes <= head.size()) {
    copy_bytes(to.head + link_head_bytes, from.head, from.head_bytes);
    to.head_bytes = static_cast<uint8_t>(link_head_bytes + from.head_bytes);
  } else {
    to.pieces[to.piece_count++] = {from.head, from.head_bytes};
  }
  std::copy_n(from.pieces.begin(), from.piece_count, to.pieces.begin() + to.piece_count);
  to.piece_count = static_cast<uint8_t>(to.piece_count + from.piece_count);
  to.tail = from.tail;
  to.tail_bytes = from.tail_bytes;
  to.ecn = from.ecn;
  to.path = 0;
  to.to = switch_;
}

size_t LinkPort::send(std::span<TxFrame* const> frames, Time now) {
  send_due_message(now);
  size_t sent = 0;
  while (sent < frames.size()) {
    std::array<TxFrame*, burst> inner;
    const size_t wanted = std::min(burst, frames.size() - sent);
    const size_t lent = inner_->lend(std::span(inner).first(wanted));
    for (size_t i = 0; i < lent; ++i) put_head(*frames[sent + i], *inner[i]);
    const size_t taken = inner_->send(std::span(inner).first(lent), now);
    inner_->unlend(std::span(inner).subspan(taken, lent - taken));
    for (size_t i = 0; i < taken; ++i, ++inner_taken_, ++sent) {
      const bool refers = link_head_bytes + frames[sent]->head_bytes > TxFrame::head_room;
      refers ? keep({inner_taken_, frames[sent]}) : pool_.take_back(frames[sent]);
    }
    if (taken < wanted) break;
  }
  // The switch drops them.
  if (attachment_.state() == Attachment::State::refused) refused_ += sent;
  return sent;
}

void LinkPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

void LinkPort::keep(const Kept& kept) {
  kept_[(kept_first_ + kept_count_++) % kept_.size()] = kept;
}

uint64_t LinkPort::settled() {
  const uint64_t inner = inner_->settled();
  for (; kept_count_ > 0 && kept_[kept_first_].number < inner; --kept_count_) {
    const Kept& kept = kept_[kept_first_];
    kept.frame != nullptr ? pool_.take_back(kept.frame) : void(++messages_settled_);
    kept_first_ = (kept_first_ + 1) % kept_.size();
  }
  return inner - messages_settled_;
}

bool LinkPort::send_message(const LinkControl& message, Time now) {
  settled();
  if (messages_sent_ - messages_settled_ == most_messages) return false;
  TxFrame* frame = nullptr;
  if (inner_->lend({&frame, 1}) == 0) return false;
  const LinkControlBytes bytes = control_datagram(message);
  copy_bytes(frame->head, bytes.data(), bytes.size());
  frame->head_bytes = bytes.size();
  frame->piece_count = frame->tail_bytes = frame->path = 0;
  frame->ecn = Ecn::not_ect;
  frame->to = switch_;
  if (inner_->send({&frame, 1}, now) == 0) {
    inner_->unlend({&frame, 1});
    return false;
  }
  keep({inner_taken_++, nullptr});
  ++messages_sent_;
  return true;
}

// Sends the message to the switch that is due, if any.
void LinkPort::send_due_message(Time now) {
  if (const auto message = attachment_.due(now)) send_message(*message, now);
}

// ---- inwards

Time LinkPort::next_arrival() const { return std::min(inner_->next_arrival(), attachment_.next()); }

size_t LinkPort::receive(std::span<RxFrame> frames, Time now) {
  send_due_message(now);
  const size_t room = std::min(frames.size(), free_.size());
  const size_t arrived = inner_->receive(frames.first(room), now);
  size_t kept = 0;
  for (size_t i = 0; i < arrived; ++i) {
    const RxFrame frame = frames[i];
    if (unwrap(frame, frames[kept], now)) {
      ++kept;
    } else {
      ++not_packets_;
      inner_->release({&frame, 1});
    }
  }
  send_due_message(now);  // an answer may be due
  return kept;
}

// Returns whether the frame has a packet for this device, which `out` then is.
bool LinkPort::unwrap(const RxFrame& frame, RxFrame& out, Time now) {
  const std::span datagram(frame.data, frame.bytes);
  if (*frame.from == switch_) {
    if (const auto packet = parse_link_packet(datagram)) {
      const Cna24Nth& nth = packet->nth;
      if (nth.destination != attachment_.cna() || nth.source == 0) {
        ++malformed_;
        return false;
      }
      const uint32_t slot = free_.back();
      free_.pop_back();
      received_[slot] = {frame, {cna_address(nth.source), ub_port}};
      out = {.data = packet->packet.data(),
             .bytes = static_cast<uint32_t>(packet->packet.size()),
             .cookie = slot,
             .from = &received_[slot].from,
             .ecn = frame.ecn,
             .cci = nth.cci,
             .switch_queue = packet->word.switch_queue};
      return true;
    }
    if (const auto message = parse_link_control(datagram)) {
      attachment_.handle(*message, now);
      return false;
    }
  }
  ++malformed_;
  return false;
}

void LinkPort::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) {
    inner_->release({&received_[frame.cookie].inner, 1});
    free_.push_back(frame.cookie);
  }
}

}  // namespace urma::drivers::link
