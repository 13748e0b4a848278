// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/dpdk_port.h"

#include <poll.h>
#include <rte_mbuf.h>

#include <algorithm>

#include "base/bits.h"
#include "base/clock.h"
#include "drivers/dpdk/eal.h"
#include "drivers/dpdk/eal_thread.h"
#include "drivers/frame_pool.h"

namespace urma::drivers::dpdk {
namespace {

// The most bytes that the headers of IP, UDP and UB add to the payload of a packet.
constexpr uint32_t overhead = ipv6_bytes + udp_bytes + 96;
// How long `open` waits for the link of a port whose peer is there.
constexpr Duration link_patience = std::chrono::milliseconds(300);
constexpr timespec between_link_looks = {.tv_sec = 0, .tv_nsec = 1'000'000};
// While packets wait for the MAC address of their next hop, the question is repeated.
constexpr Duration between_questions = std::chrono::milliseconds(1);
// A port that has read none of the packets that it was given for so long is restarted.
constexpr Duration most_unread = std::chrono::seconds(1);

static_assert(most_header_bytes <= RTE_PKTMBUF_HEADROOM);

std::byte* bytes_of(const rte_mbuf& buffer) {
  return static_cast<std::byte*>(buffer.buf_addr) + RTE_PKTMBUF_HEADROOM;
}

// Lays the packet, which begins at `bytes_of`, and `front` bytes before it into the buffer.
void set_bounds(rte_mbuf& buffer, size_t front, size_t bytes) {
  buffer.data_off = static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM - front);
  buffer.data_len = static_cast<uint16_t>(front + bytes);
  buffer.pkt_len = buffer.data_len;
}

InternetSum sum_of(const rte_mbuf& packet) {
  InternetSum sum;
  for (const rte_mbuf* part = &packet; part != nullptr; part = part->next) {
    sum.add({rte_pktmbuf_mtod(part, const std::byte*), part->data_len});
  }
  return sum;
}

// Returns whether the port has made sure that the packet is as it was sent. Virtual ports do that
// with checksums that were never computed: the field then has the pseudo header's sum.
bool is_intact(const rte_mbuf& received) {
  const uint64_t checksum = received.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  return checksum == RTE_MBUF_F_RX_L4_CKSUM_GOOD || checksum == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

uint32_t mtu_of(const Settings& settings) {
  uint32_t mtu = largest_rtp_mtu;
  while (mtu > 1024 && mtu + overhead > settings.ip_mtu) mtu /= 2;
  return mtu;
}

Gatherer::Settings gathering_of(const GatherChoice& choice, const EtherDevice& device) {
  return {.least_bytes = choice.least_bytes,
          .most_buffers = device.facts().most_buffers,
          .pool = device.send_pool()};
}

// Returns an address that is derived from the MAC address, as IPv6 hosts derive theirs (RFC 4291).
Eid derived_address(const Mac& mac) {
  constexpr std::byte prefix[] = {std::byte{0xfd}, std::byte{0x55}, std::byte{0x42}, std::byte{1}};
  Eid out;
  std::ranges::copy(prefix, out.bytes.begin());
  std::copy_n(mac.begin(), 3, out.bytes.begin() + 8);
  out.bytes[8] ^= std::byte{2};
  out.bytes[11] = std::byte{0xff};
  out.bytes[12] = std::byte{0xfe};
  std::copy_n(mac.begin() + 3, 3, out.bytes.begin() + 13);
  return out;
}

Station::Settings station_of(const Settings& settings, const Mac& mac) {
  constexpr unsigned derived_prefix = 64;
  const bool derived = settings.address == Eid{};
  return {.mac = mac,
          .address = derived ? derived_address(mac) : settings.address,
          .prefix_bits = derived ? derived_prefix : settings.prefix_bits,
          .gateway = settings.gateway,
          .port = settings.udp_port,
          .ip_mtu = settings.ip_mtu,
          .vlan = settings.vlan,
          .dscp = settings.dscp,
          .entropy = settings.entropy};
}

// Returns the flow of a packet. All packets of a channel have the same one, which follows from the
// peer's TPN in their RTPH.
uint32_t hash_of(const TxFrame& frame) {
  constexpr size_t tpns_at = 2;
  constexpr size_t tpns_end = 8;
  const std::span<const std::byte> packet = beginning_of(frame);
  uint64_t key = load_be<8>(frame.to.address.bytes.data() + 8);
  if (packet.size() >= tpns_end) key ^= load_be<6>(&packet[tpns_at]) << 16;
  return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15u) >> 32);
}

uint16_t queue_of(uint32_t flow, const EtherDevice& device) {
  const uint16_t queues = device.facts().queues;
  return queues == 1 ? uint16_t{0} : static_cast<uint16_t>(flow % queues);
}

// Gives a buffer to each of these frames that has none, at most `most`, from the rear. All are
// taken from the pool at once, or, if there are fewer in it, one by one.
template <size_t most, class Frame>
void give_buffers(std::span<Frame* const> frames, rte_mempool* pool) {
  std::array<Frame*, most> bare;
  std::array<rte_mbuf*, most> buffers;
  unsigned count = 0;
  for (size_t i = frames.size(); i-- > 0;) {
    if (frames[i]->buffer == nullptr) bare[count++] = frames[i];
  }
  const bool all = rte_pktmbuf_alloc_bulk(pool, buffers.data(), count) == 0;
  for (unsigned i = 0; i < count; ++i) {
    bare[i]->buffer = all ? buffers[i] : rte_pktmbuf_alloc(pool);
  }
}

}  // namespace

Result<std::unique_ptr<PacketPort>> DpdkPort::open(const Settings& settings) {
  const Result<const Eal*> eal = Eal::start(settings.eal);
  if (!eal) return eal.error();
  const Pmd& pmd = pmd_of(settings);
  if (settings.address == Eid{} && !pmd.own_mac) {
    return Error{
        Status::invalid_argument,
        "dpdk: " + settings.port +
            ": such ports have no MAC address of their own from "
            "which an IP address could be derived. Fix: ip=10.0.0.5/24, or another address"};
  }
  Result<std::unique_ptr<EtherDevice>> device = EtherDevice::open(settings);
  if (!device) return device.error();
  if (auto started = (*device)->extended().start(); !started) return started.error();
  const Station::Settings station = station_of(settings, (*device)->facts().mac);
  register_thread();
  const GatherChoice choice = choose_gathering(settings, **device, mtu_of(settings));
  std::unique_ptr<DpdkPort> port(new DpdkPort(std::move(*device), station, settings, choice));
  port->facts_.settings.push_back(
      {"eal", (*eal)->command_line(), Origin::driver, "", "the arguments of EAL"});
  port->facts_.settings.push_back({"hugepages", yes_or_no((*eal)->huge_pages()), Origin::system, "",
                                   "huge pages for packet buffers"});
  return std::unique_ptr<PacketPort>(std::move(port));
}

DpdkPort::DpdkPort(std::unique_ptr<EtherDevice> device, const Station::Settings& station,
                   const Settings& settings, const GatherChoice& choice)
    : gatherer_(gathering_of(choice, *device)),
      device_(std::move(device)),
      station_(station),
      largest_(settings.ip_mtu - (station_.is_ipv4() ? ipv4_bytes : ipv6_bytes) - udp_bytes),
      has_flows_(settings.entropy || device_->facts().queues > 1),
      frames_(frame_count),
      held_(most_received) {
  for (uint32_t i = 0; i < frame_count; ++i) free_.push_back(&frames_[i]);
  for (uint32_t i = most_received; i-- > 0;) free_slots_.push_back(i);
  own_.reserve(burst);
  state_facts(settings);
  state_settings(settings);
  state_gathering(choice);
  const bool gathers = choice.least_bytes != Gatherer::Settings::none;
  const bool by_device = device_->pmd().reads == Pmd::Reads::by_device;
  if (gathers && (by_device || settings.gather == Gather::registered)) {
    gatherer_.limit_to(readable_.emplace(*device_));
  }
  await_link();
  station_.announce();
}

void DpdkPort::await_link() {
  // A peer that is there answers within milliseconds; one that is not may come later.
  const Time until = read_clock() + link_patience;
  bool up = device_->facts().peer_seen || device_->pmd().heals == Pmd::Heals::itself;
  while (!up && read_clock() < until) {
    ppoll(nullptr, 0, &between_link_looks, nullptr);
    up = device_->tend(read_clock());
  }
}

DpdkPort::~DpdkPort() {
  if (getpid() != opener_) {
    // A forked child shares the memory of EAL with its parent, which goes on using the port.
    static_cast<void>(device_.release());
    return;
  }
  if (gatherer_.waits()) end_reads();
  for (uint32_t i = 0; i < frame_count; ++i) rte_pktmbuf_free(frames_[i].buffer);
  for (const Held& held : held_) rte_pktmbuf_free(held.buffer);
  for (const Own& packet : own_) rte_pktmbuf_free(packet.buffer);
  waiting_.take_if([](const auto& packet) {
    rte_pktmbuf_free(packet.buffer);
    return true;
  });
}

// Takes the application's memory from the port. The other end of a ring may be copying a packet.
void DpdkPort::end_reads() {
  device_->take_back(false);
  const Time until = read_clock() + most_unread;
  while (gatherer_.settle(taken_) < taken_ && read_clock() < until) {
    ppoll(nullptr, 0, &between_link_looks, nullptr);
  }
}

void DpdkPort::state_facts(const Settings& settings) {
  const EtherDevice::Facts& device = device_->facts();
  const uint32_t mtu = mtu_of(settings);
  facts_.self = station_.self();
  facts_.eid = facts_.self.address;
  facts_.mtu = mtu;
  facts_.buffer_bytes = uint32_t{device.receive_descriptors} * device.queues * mtu;
  facts_.carries.ecn = true;
  facts_.arms = !descriptors().empty();
  facts_.line_bytes_per_second = device.line_bytes_per_second;
  facts_.metrics = device_->extended().metrics();
  facts_.description =
      settings.port + " (" + device.driver + ") at " + to_string(facts_.self) + ", MTU " +
      std::to_string(mtu) + ", " + std::to_string(device.queues) + " queues" +
      (settings.vlan != 0 ? ", VLAN " + std::to_string(settings.vlan) : "") + ", ECN, " +
      (facts_.arms ? "interrupts" : "polled") + (device.peer_seen ? "" : ", link down");
}

void DpdkPort::state_settings(const Settings& settings) {
  const EtherDevice::Facts& device = device_->facts();
  SettingList& all = facts_.settings;
  all = settings.options;
  const bool derived = settings.address == Eid{};
  all.push_back({"address", to_string(facts_.self),
                 derived ? Origin::driver : Origin::device_string,
                 derived ? "from the MAC address" : "dpdk.ip", "where peers reach this device"});
  all.push_back(
      {"eid", to_string(facts_.eid), Origin::driver, "the address", "the identity of this device"});
  all.push_back({"mtu", size_text(facts_.mtu), Origin::driver,
                 "IP packets have at most " + std::to_string(settings.ip_mtu) + " bytes",
                 "largest payload of a packet, in bytes"});
  all.push_back(
      {"driver", device.driver, Origin::driver, settings.arguments, "DPDK's driver of the port"});
  all.push_back({"receive_descriptors", std::to_string(device.receive_descriptors), Origin::driver,
                 "as the port allows", "packets that wait in each queue"});
  all.push_back({"send_descriptors", std::to_string(device.send_descriptors), Origin::driver,
                 "as the port allows", "packets that wait to be sent"});
  all.push_back({"sleep", facts_.arms ? "interrupts" : "polled every 100 us", Origin::driver,
                 facts_.arms ? "the port has them" : "the port has no interrupts",
                 "how packets are noticed while threads sleep"});
  all.push_back({"udp_checksum", device.sums_udp ? "port" : "software", Origin::driver,
                 "dev_info of the port", "which part computes checksums of IPv6 packets"});
}

void DpdkPort::state_gathering(const GatherChoice& choice) {
  const bool copies = choice.least_bytes == Gatherer::Settings::none;
  const std::string value =
      copies ? "copied" : "gathered from " + size_text(choice.least_bytes) + " on";
  facts_.description += copies ? ", data copied into buffers" : ", data " + value;
  facts_.settings.push_back(
      {"transmit", value, Origin::driver, choice.why,
       "whether data is copied into buffers of the port, or sent from the application's memory, "
       "in pieces of so many bytes or more"});
}

PortCounters DpdkPort::counters() const {
  PortCounters counters = counters_;
  counters.send_failures += device_->counts().dropped;
  return counters;
}

// ---- sending

size_t DpdkPort::lend(std::span<TxFrame*> frames) {
  register_thread();
  size_t lent = 0;
  while (lent < frames.size() && !free_.empty()) {
    Frame& frame = *free_.back();
    if (frame.buffer == nullptr) {
      const size_t next = std::min({frames.size() - lent, free_.size(), burst});
      give_buffers<burst, Frame>(std::span(free_).last(next), device_->send_pool());
    }
    if (frame.buffer == nullptr) break;  // the port has all of them
    frame.head = bytes_of(*frame.buffer);
    free_.pop_back();
    frames[lent++] = &frame;
  }
  return lent;
}

void DpdkPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) free_.push_back(static_cast<Frame*>(frame));
}

uint32_t DpdkPort::flow_of(const TxFrame& frame) const { return has_flows_ ? hash_of(frame) : 0; }

// Copies the rest of the packet behind its head.
inline void DpdkPort::copy(Frame& frame) const {
  std::byte* const begin = bytes_of(*frame.buffer);
  const std::byte* const end = copy_rest(frame, begin + frame.head_bytes);
  set_bounds(*frame.buffer, 0, static_cast<size_t>(end - begin));
}

// Writes the outer headers in front of a packet that has none.
inline void DpdkPort::put_on_wire(rte_mbuf& packet, const Envelope& envelope, Ecn ecn,
                                  uint32_t flow) const {
  const std::span<std::byte> bytes(bytes_of(packet), packet.pkt_len);
  const size_t header_bytes = station_.header_bytes();
  packet.ol_flags = 0;
  if (station_.is_ipv4()) {
    envelope.put(bytes, {.ecn = ecn, .flow = flow});
  } else if (device_->facts().sums_udp) {
    envelope.put(bytes, {.ecn = ecn, .flow = flow, .sums = false});
    packet.ol_flags = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
    packet.l2_len = (header_bytes - ipv6_bytes - udp_bytes) & 0x7f;
    packet.l3_len = ipv6_bytes;
  } else {
    const InternetSum sum = sum_of(packet);
    envelope.put(bytes, {.ecn = ecn, .flow = flow, .sum = &sum});
  }
  rte_pktmbuf_prepend(&packet, static_cast<uint16_t>(header_bytes));
}

// Hands the packets to the port. Returns how many it took; the others are restored.
size_t DpdkPort::flush(Burst& out, Time now) {
  if (out.count == 0) return 0;
  const size_t taken = device_->send(out.queue, std::span(out.packets).first(out.count), now);
  ++counters_.calls_sent;
  out.count = 0;
  return taken;
}

// Takes a frame that does not leave now: one to this port itself, to an unknown next hop, to an
// address that is not reachable, or one that is too large. Returns false if it must stay lent.
bool DpdkPort::keep_back(Frame& frame, Time now) {
  if (!fits(frame)) {
    ++counters_.send_failures;
    return true;  // the frame keeps its buffer
  }
  if (frame.to == facts_.self) {
    if (own_.size() == burst) return false;
    own_.push_back({frame.buffer, frame.ecn});
  } else if (station_.reaches(frame.to.address) && !waiting_.full()) {
    const uint32_t flow = flow_of(frame);
    waiting_.add(
        frame.buffer,
        {.to = frame.to, .ecn = frame.ecn, .flow = flow, .queue = queue_of(flow, *device_)}, now);
  } else {
    // If it stayed lent, packets to other hosts would wait behind those to one that is gone.
    ++counters_.unreachable;
    return true;
  }
  frame.buffer = nullptr;
  return true;
}

size_t DpdkPort::send(std::span<TxFrame* const> frames, Time now) {
  register_thread();
  if (!gatherer_.waits()) settled_at_ = now;
  Burst out;
  size_t taken = 0;  // from the front
  size_t laid = 0;   // as packets
  const auto frame_at = [&](size_t i) -> Frame& { return static_cast<Frame&>(*frames[i]); };
  const auto take = [&](size_t count, bool sent) {
    for (; count > 0; --count, ++taken) {
      if (sent) frame_at(taken).buffer = nullptr;
      free_.push_back(&frame_at(taken));
    }
  };
  while (laid < frames.size()) {
    Frame& frame = frame_at(laid);
    const Envelope* const envelope = fits(frame) ? station_.envelope(frame.to, now) : nullptr;
    const uint32_t flow = flow_of(frame);
    const uint16_t queue = queue_of(flow, *device_);
    // The frames in front leave first.
    if (envelope == nullptr || out.count == burst || (out.count > 0 && queue != out.queue)) {
      const size_t expected = out.count;
      const size_t got = flush(out, now);
      take(got, true);
      if (got < expected) break;
    }
    if (envelope == nullptr) {
      if (fits(frame)) copy(frame);
      if (!keep_back(frame, now)) break;
      take(1, false);
      ++laid;
      continue;
    }
    if (!gatherer_.chain(frame, *frame.buffer, taken_ + laid)) copy(frame);
    put_on_wire(*frame.buffer, *envelope, frame.ecn, flow);
    out.queue = queue;
    out.packets[out.count++] = frame.buffer;
    ++laid;
  }
  take(flush(out, now), true);
  while (laid > taken) {
    rte_mbuf& buffer = *frame_at(--laid).buffer;
    if (buffer.nb_segs > 1) gatherer_.undo_latest(buffer);
  }
  taken_ += taken;
  counters_.frames_sent += taken;
  settle(now);
  send_messages(now);
  return taken;
}

// Looks which frames the port has read. One that reads none for too long is made to free them.
void DpdkPort::settle(Time now) {
  const uint64_t before = settled_;
  settled_ = gatherer_.settle(taken_);
  if (gatherer_.waits() && device_->pmd().reads == Pmd::Reads::by_device) {
    device_->complete();
    settled_ = gatherer_.settle(taken_);
  }
  if (!gatherer_.waits() || settled_ != before) {
    settled_at_ = now;
    taken_back_ = false;
  } else if (now - settled_at_ > most_unread) {
    // A device that is made anew has forgotten which memory it may read.
    if (taken_back_) gatherer_.stop();
    device_->take_back(taken_back_);
    settled_at_ = now;
    taken_back_ = true;
    settled_ = gatherer_.settle(taken_);
  }
}

void DpdkPort::send_messages(Time now) {
  for (auto message = station_.message(); !message.empty(); message = station_.message()) {
    rte_mbuf* packet = rte_pktmbuf_alloc(device_->send_pool());
    if (packet == nullptr) return;
    std::ranges::copy(message, bytes_of(*packet));
    set_bounds(*packet, 0, message.size());
    ++counters_.calls_sent;
    if (device_->send(0, {&packet, 1}, now) == 0) {
      rte_pktmbuf_free(packet);
      return;
    }
    station_.pop_message();
  }
}

// Sends the packets whose next hop has become known, and drops those that have waited too long.
void DpdkPort::send_waiting(Time now) {
  waiting_.take_if([&](const WaitingPackets::Packet& packet) {
    rte_mbuf* buffer = packet.buffer;
    if (now >= packet.until) {
      ++counters_.unreachable;
      rte_pktmbuf_free(buffer);
      return true;
    }
    const Envelope* const envelope = station_.envelope(packet.to.to, now);
    if (envelope == nullptr) return false;
    put_on_wire(*buffer, *envelope, packet.to.ecn, packet.to.flow);
    ++counters_.calls_sent;
    if (device_->send(packet.to.queue, {&buffer, 1}, now) == 1) return true;
    rte_pktmbuf_adj(buffer, static_cast<uint16_t>(station_.header_bytes()));
    return false;
  });
}

// ---- receiving

size_t DpdkPort::receive(std::span<RxFrame> frames, Time now) {
  register_thread();
  received_at_ = now;
  if (device_->tend(now)) station_.announce();
  settle(now);
  size_t kept = receive_own(frames);
  for (; kept < frames.size() && backlog_first_ < backlog_end_; ++kept) {
    frames[kept] = backlog_[backlog_first_++];
  }
  if (kept < frames.size()) {
    kept += read(frames.subspan(kept), now);
  } else if (backlog_first_ == backlog_end_) {
    backlog_first_ = 0;
    backlog_end_ = read(backlog_, now);
  }
  counters_.frames_received += kept;
  if (!waiting_.empty()) send_waiting(now);
  send_messages(now);
  return kept;
}

// Packets that came before `arm` give no signal, so they must be read first.
Time DpdkPort::next_arrival() const {
  if (!facts_.arms) return never;
  if (unread_ || !own_.empty()) return received_at_;
  return waiting_.empty() ? never : received_at_ + between_questions;
}

inline void DpdkPort::hold(rte_mbuf& buffer, const Station::Arrival& arrival, RxFrame& out) {
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  Held& held = held_[slot];
  held.buffer = &buffer;
  held.from = arrival.from;
  out = {.data = arrival.packet.data(),
         .bytes = static_cast<uint32_t>(arrival.packet.size()),
         .cookie = slot,
         .from = &held.from,
         .ecn = arrival.ecn};
}

// Returns whether the buffer has a packet for this device, which `out` then is. Inlined like the
// parsing in it: a call for each packet costs a tenth of what it does.
[[gnu::always_inline]] inline bool DpdkPort::take_in(rte_mbuf& buffer, RxFrame& out, Time now) {
  using Kind = Station::Kind;
  // All buffers have room for the largest frame, so a chain is a frame that is larger, or one that
  // the other end of a ring has gathered.
  if (buffer.nb_segs != 1 && rte_pktmbuf_linearize(&buffer) != 0) {
    ++counters_.malformed;
    return false;
  }
  const std::span frame(rte_pktmbuf_mtod(&buffer, const std::byte*), buffer.data_len);
  const Station::Arrival arrival = station_.take(frame, !is_intact(buffer), now);
  if (arrival.kind == Kind::packet) {
    hold(buffer, arrival, out);
    return true;
  }
  if (arrival.kind == Kind::malformed || arrival.kind == Kind::checksum) ++counters_.malformed;
  return false;
}

// Reads one burst from the port. Returns how many packets for this device were in it.
size_t DpdkPort::read(std::span<RxFrame> frames, Time now) {
  std::array<rte_mbuf*, burst> arrived;
  const size_t room = std::min({frames.size(), free_slots_.size(), burst});
  const size_t count = device_->receive(std::span(arrived).first(room));
  counters_.calls_received += count > 0 ? 1 : 0;
  unread_ = room == 0 || count > 0;
  for (size_t i = 0; i < count; ++i) rte_prefetch0(rte_pktmbuf_mtod(arrived[i], void*));
  size_t kept = 0;
  unsigned others = 0;
  for (size_t i = 0; i < count; ++i) {
    if (take_in(*arrived[i], frames[kept], now)) {
      ++kept;
    } else {
      arrived[others++] = arrived[i];
    }
  }
  if (others > 0) rte_pktmbuf_free_bulk(arrived.data(), others);
  return kept;
}

// Returns packets that were sent to this port itself.
size_t DpdkPort::receive_own(std::span<RxFrame> frames) {
  const size_t count = std::min({own_.size(), frames.size(), free_slots_.size()});
  for (size_t i = 0; i < count; ++i) {
    rte_mbuf& buffer = *own_[i].buffer;
    hold(buffer,
         {.packet = {bytes_of(buffer), buffer.pkt_len}, .from = facts_.self, .ecn = own_[i].ecn},
         frames[i]);
  }
  own_.erase(own_.begin(), own_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

void DpdkPort::release(std::span<const RxFrame> frames) {
  std::array<rte_mbuf*, burst> buffers;
  while (!frames.empty()) {
    const size_t count = std::min(frames.size(), burst);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t slot = frames[i].cookie;
      buffers[i] = std::exchange(held_[slot].buffer, nullptr);
      free_slots_.push_back(slot);
    }
    rte_pktmbuf_free_bulk(buffers.data(), static_cast<unsigned>(count));
    frames = frames.subspan(count);
  }
}

}  // namespace urma::drivers::dpdk
