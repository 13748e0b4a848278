// SPDX-License-Identifier: Apache-2.0
// Executes the counted case the given number of times, in a function of its own that callgrind
// observes.
//   counted                 the compiler that it was made by
//   counted CASE TIMES

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/urma_switch/forwarder.h"
#include "congestion/arithmetic.h"
#include "drivers/driver.h"
#include "fabric/switch.h"
#include "memseg/segment_table.h"
#if URMA_IMITATES_VERBS
#include "tests/verbs/soft_adapters.h"
#endif
#include "urma/urma.hpp"

namespace {

using namespace urma;

constexpr size_t segment_bytes = 4096;
constexpr int skipped = 77;    // this build, or this machine, does not have what is counted
constexpr unsigned burst = 8;  // sends that are posted together, so that few passes find nothing

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "counted: %s\n", what);
  std::exit(1);
}

// Two devices under virtual time, so that only their own instructions are counted.
struct End {
  explicit End(const std::string& text, std::string_view control = "",
               Threads threads = Threads::inlined)
      : device(open(text,
                    {.threads = threads, .congestion = std::string(control), .observable = false})
                   .value()),
        jetty(device.jetty({.berths = 128, .receives = 8}).value()) {}

  // Returns how many of this operation are among them. Other completions are only checked.
  static unsigned count(Operation operation, std::span<const Completion> some) {
    unsigned count = 0;
    for (const Completion& one : some) {
      if (!one.ok()) fail("a work has failed");
      if (one.operation == operation) ++count;
    }
    return count;
  }
  unsigned look(Operation operation = Operation::receive) {
    std::array<Completion, 4> some;
    return count(operation, std::span(some).first(jetty.poll(some)));
  }
  // Returns after at most 1 us, because virtual time advances only if an end waits.
  unsigned wait(Operation operation) {
    return count(operation, jetty.wait(std::chrono::microseconds(1)));
  }
  // Returns whether so many writes end within 2 s.
  bool waits_for_writes(size_t left) {
    while (left > 0) {
      const auto some = jetty.wait(std::chrono::seconds(2));
      if (some.empty()) return false;
      left -= count(Operation::write, some);
    }
    return true;
  }
  // Takes one message. As long as there is no channel, time must pass and the other end must be
  // polled.
  void take_one(End& other) {
    for (int looks = 0; looks < 10'000; ++looks) {
      if (look() > 0 || wait(Operation::receive) > 0) return;
      (void)other.look();
    }
    fail("a message has not come");
  }
  void expect() {
    if (!jetty.receive(inbox, 0)) fail("a buffer was not taken");
  }
  void send_to(const RemoteJetty& to) {
    if (jetty.post(send(std::span(outbox).first(8), to)) != 1) fail("a send was not posted");
  }

  Device device;
  Jetty jetty;
  std::byte inbox[64]{};
  std::byte outbox[64]{};
};

// Sends 8 B on a window, where such sends must be fast, or over a network.
struct Talk {
  explicit Talk(const std::string& text, unsigned expected = 1, std::string_view control = "")
      : here(text, control), there(text, control) {
    for (unsigned i = 0; i < expected; ++i) there.expect();
  }
  // There and back, until both messages are received.
  void once() {
    here.expect();
    here.send_to(to_there);
    there.take_one(here);
    there.expect();
    there.send_to(to_here);
    here.take_one(there);
  }
  // A burst in one direction, until it is received and acknowledgements have completed the sends.
  void send_burst() {
    for (unsigned i = 0; i < burst; ++i) here.send_to(to_there);
    unsigned received = 0;
    unsigned sent = 0;
    for (int looks = 0; looks < 10'000 && (received < burst || sent < burst); ++looks) {
      for (unsigned some = there.look(); some > 0; --some, ++received) there.expect();
      sent += here.wait(Operation::send);
    }
    if (received < burst || sent < burst) fail("a send was not acknowledged");
  }

  // Writes to this segment of the other end, until the write is acknowledged.
  void write_to(const RemoteSegment& segment, std::span<std::byte> data) {
    if (here.jetty.post(write(data, segment)) != 1) fail("a write was not posted");
    for (int looks = 0; looks < 10'000; ++looks) {
      (void)there.look();
      if (here.wait(Operation::write) > 0) return;
    }
    fail("a write was not acknowledged");
  }

  End here;
  End there;
  RemoteJetty to_here = there.device.import(here.jetty.descriptor()).value().jetty;
  RemoteJetty to_there = here.device.import(there.jetty.descriptor()).value().jetty;
};

// A switch whose ports have this meter.
std::string network_with(const std::string& meter) {
  return "sim:counted?topology=star&rate=100Gbit&meter=" + meter;
}

// More channels of a device: their peers are far, so that each window is paced over a round trip of
// 8 ms. They have nothing to send, or packets that wait for their departure.
class FarPeers {
 public:
  static constexpr size_t count = 64;

  FarPeers(End& from, std::string_view control, bool waiting)
      : from_(from), outbox_(waiting ? 64 << 10 : 64) {
    for (size_t i = 0; i < count; ++i) {
      ends_.push_back(
          std::make_unique<End>(network_with("none") + "&delay=4ms", control, Threads::automatic));
      owned_.push_back(ends_.back()->device.allocate(outbox_.size()).value());
      const RemoteSegment segment = from.device.import(owned_.back().descriptor()).value().segment;
      if (from.jetty.post(write(outbox_, segment)) != 1) fail("a write was not posted");
    }
    // The first packet of each channel shows how long the round trip is.
    const bool begun = waiting ? sends(2, std::chrono::seconds(2)) : from.waits_for_writes(count);
    if (!begun) fail("channels to far peers have not begun");
    sent_ = sent();
  }
  // Fails unless nothing but `others` packets has left meanwhile, and packets of all channels leave
  // next, before the peers can have answered anything that is sent now.
  void check_that_they_wait(uint64_t others) {
    if (sent() != sent_ + others) fail("packets have not waited for their departure");
    if (!sends(1, std::chrono::milliseconds(7))) fail("packets do not wait for their departure");
  }

 private:
  uint64_t sent() const { return from_.device.stats().value().packets_sent; }
  // Returns whether all channels together send so many packets each within the time.
  bool sends(uint64_t each, std::chrono::milliseconds within) {
    constexpr std::chrono::milliseconds step(1);
    const uint64_t wanted = sent() + each * count;
    for (; sent() < wanted; within -= step) {
      if (within < step) return false;
      (void)from_.jetty.wait(step);
    }
    return true;
  }

  End& from_;
  std::vector<std::byte> outbox_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<Segment> owned_;
  uint64_t sent_ = 0;
};

// A port whose eight flows load it to 99 %, as its meter sees it.
class Load {
 public:
  static constexpr uint32_t bytes = 4160;

  congestion::Signal next(std::string_view meter) {
    now += gap;
    ++packets;
    if (meter == "caqm_r") return {.increase = packets % 8 == 0, .hint = code};
    if (meter == "caqm_w") return {.increase = true, .hint = 8};
    return {};
  }

  Time now{};
  uint32_t packets = 0;

 private:
  static constexpr Duration gap{336};
  const uint8_t code = congestion::rate_code(12.5e9 / 8, 0);
};

// Two ports of a driver that is a shared object, and packets of 64 B from one to the other.
class Wire {
 public:
  static constexpr unsigned burst = 32;

  // Neither time-outs nor questions are due, because the time stays as it is.
  static constexpr Time now{std::chrono::seconds(1)};

  Wire(const std::string& from, const std::string& to) : from_(open(from)), to_(open(to)) {
    // The first packets wait until their destination is known.
    constexpr unsigned warm = 64;
    constexpr unsigned most_waits = 2000;
    for (unsigned i = 0; arrived_ < size_t{warm} * burst && i < most_waits; ++i) {
      transmit();
      arrive();
      RxFrame answer;
      (void)from_->receive({&answer, 1}, now);
      if (i > warm) usleep(1000);
    }
    arrive();
    arrived_ = 0;
  }

  void transmit() {
    std::array<TxFrame*, burst> frames;
    if (from_->lend(frames) != burst) fail("frames were not lent");
    for (TxFrame* frame : frames) {
      frame->head_bytes = 64;
      frame->piece_count = frame->tail_bytes = frame->path = 0;
      frame->ecn = Ecn::not_ect;
      frame->to = to_->facts().self;
    }
    if (from_->send(frames, now) != burst) fail("frames were not sent");
  }
  void arrive() {
    std::array<RxFrame, burst> frames;
    const size_t count = to_->receive(frames, now);
    to_->release(std::span(frames).first(count));
    arrived_ += count;
  }
  size_t arrived() const { return arrived_; }

 private:
  static std::unique_ptr<drivers::PacketPort> open(const std::string& device) {
    auto port = drivers::open_port(drivers::parse_device_string(device).value());
    if (port) return std::move(*port);
    std::fprintf(stderr, "counted: %s\n", port.error().message.c_str());
    std::exit(port.status() == Status::unsupported ? skipped : 1);
  }

  std::unique_ptr<drivers::PacketPort> from_;
  std::unique_ptr<drivers::PacketPort> to_;
  size_t arrived_ = 0;
};

// A mapped segment of a peer, and memory to read to or write from.
struct Mapped {
  RemoteSegment segment;
  mutable std::array<std::byte, 8> data{};
};

Work write_8(const Mapped& at) { return write(at.data, at.segment, 8); }
Work read_8(const Mapped& at) { return read(at.data, at.segment, 8); }
Work add_1(const Mapped& at) { return fetch_add(at.segment, 8, 1); }

}  // namespace

// counts.py passes the names of these functions to callgrind.
extern "C" {

[[gnu::noinline]] void counted_register(Device& device, std::span<std::byte> memory, int times) {
  for (int i = 0; i < times; ++i) {
    Segment segment = device.register_memory(memory).value();
    if (!segment.unregister().ok()) fail("a segment was not unregistered");
  }
}

[[gnu::noinline]] void counted_access(const memseg::SegmentTable& table,
                                      const memseg::SegmentTable::Token& token, uint64_t address,
                                      int times) {
  int found = 0;
  for (int i = 0; i < times; ++i) {
    const auto offset = static_cast<uint64_t>(i % 1024);
    found += table.access(token.id, token.value, address + offset, 64, Rights::write).at != nullptr;
  }
  if (found != times) fail("an access was refused");
}

[[gnu::noinline]] void counted_send(Talk& talk, int times) {
  for (int i = 0; i < times; ++i) talk.once();
}

[[gnu::noinline]] void counted_lane_write(Lane& lane, std::span<std::byte> data, int times) {
  for (int i = 0; i < times; ++i) {
    if (lane.write(data, 8) != Status::ok) fail("a lane has not written");
  }
}
[[gnu::noinline]] void counted_lane_read(Lane& lane, std::span<std::byte> data, int times) {
  for (int i = 0; i < times; ++i) {
    if (lane.read(data, 8) != Status::ok) fail("a lane has not read");
  }
}
[[gnu::noinline]] void counted_lane_add(Lane& lane, std::span<std::byte>, int times) {
  uint64_t previous = 0;
  for (int i = 0; i < times; ++i) {
    if (lane.fetch_add(8, 1, previous) != Status::ok) fail("a lane has not added");
  }
}

// The work is built, too.
[[gnu::noinline]] void counted_post(Jetty& jetty, Work (*build)(const Mapped&), const Mapped& at) {
  if (jetty.post(build(at)) != 1) fail("a work was not posted");
}
[[gnu::noinline]] void counted_poll(Jetty& jetty) {
  Completion one;
  if (jetty.poll({&one, 1}) != 1 || !one.ok()) fail("a work has not ended at once");
}

[[gnu::noinline]] void counted_packet(Talk& talk, int times) {
  for (int i = 0; i < times; ++i) talk.send_burst();
}

[[gnu::noinline]] void counted_packet_write(Talk& talk, const RemoteSegment& segment,
                                            std::span<std::byte> data, int times) {
  for (int i = 0; i < times; ++i) talk.write_to(segment, data);
}

[[gnu::noinline]] void counted_meter(congestion::PortMeter& meter, std::string_view name,
                                     int times) {
  Load load;
  for (int i = 0; i < times; ++i) {
    const congestion::Signal asked = load.next(name);
    const congestion::Signal in = meter.arrive(load.now, Load::bytes, 0, asked);
    (void)meter.depart(load.now, Load::bytes, 0, in);
  }
}

[[gnu::noinline]] void counted_hop(fabric::Switch& at, std::string_view meter, int times) {
  Load load;
  fabric::Departure departure;
  for (int i = 0; i < times; ++i) {
    const congestion::Signal asked = load.next(meter);
    fabric::Packet packet{
        .source = load.packets % 8 + 1, .destination = 9, .bytes = Load::bytes, .signal = asked};
    if (at.arrive(packet, load.packets % 8, load.now).drop != fabric::Drop::none) fail("a drop");
    (void)at.collect(8, load.now, departure);
  }
}

[[gnu::noinline]] void counted_forward(apps::switches::Forwarder& forwarder,
                                       std::span<const std::byte> datagram, const Endpoint& from,
                                       int times) {
  Load load;
  apps::switches::Forwarder::Leaving leaving;
  for (int i = 0; i < times; ++i) {
    (void)load.next("none");
    (void)forwarder.take(datagram, from, Ecn::not_ect, load.now);
    // A pass asks this before it sleeps.
    if (forwarder.due() == never) fail("a packet was not forwarded");
    while (forwarder.next(load.now, leaving)) forwarder.release(leaving.slot);
  }
}

[[gnu::noinline]] void counted_transmit(Wire& wire) { wire.transmit(); }

[[gnu::noinline]] void counted_arrive(Wire& wire) { wire.arrive(); }

}  // extern "C"

namespace {

void run_register(int times) {
  std::vector<std::byte> memory(segment_bytes);
  End end("sim:counted");
  { const Segment first = end.device.register_memory(memory).value(); }
  counted_register(end.device, memory, times);
}

void run_access(int times) {
  std::vector<std::byte> memory(segment_bytes);
  memseg::SegmentTable table(8, SipHash(1, 2));
  memseg::SegmentTable::Made made;
  table.add({memory.data(), memory.size(), Rights::write}, TokenPolicy::plain_text, made);
  counted_access(table, made.token, reinterpret_cast<uint64_t>(memory.data()), times);
}

void run_send(int times) {
  const std::string path = "/dev/shm/urma-counted-" + std::to_string(getpid());
  Talk talk("sim(net=counted):cxl:" + path + "?size=8M");
  unlink(path.c_str());
  for (int i = 0; i < 16; ++i) talk.once();
  counted_send(talk, times);
}

// Two devices in a window, and a segment of one of them.
struct InWindow {
  const std::string path = "/dev/shm/urma-counted-" + std::to_string(getpid());
  const std::string text = "sim(net=counted):cxl:" + path + "?size=8M";
  End there{text, "", Threads::automatic};
  End here{text};
  const Rights all = Rights::read | Rights::write | Rights::atomic;
  const Segment segment = there.device.allocate(segment_bytes, all).value();
  const Mapped mapped{here.device.import(segment.descriptor()).value().segment};

  InWindow() { unlink(path.c_str()); }
};

void run_lane(void (*step)(Lane&, std::span<std::byte>, int), int times) {
  InWindow both;
  Lane lane = both.here.jetty.lane(both.mapped.segment).value();
  step(lane, both.mapped.data, times);
}

// A work on mapped memory, which has ended when it is polled.
void run_mapped(Work (*build)(const Mapped&), int times) {
  InWindow both;
  Jetty& jetty = both.here.jetty;
  // Makes the channel.
  if (jetty.post(build(both.mapped)) != 1) fail("the first work was not posted");
  if (jetty.wait(std::chrono::seconds(2)).size() != 1) fail("the first work has not ended");
  for (int i = 0; i < times; ++i) {
    counted_post(jetty, build, both.mapped);
    counted_poll(jetty);
  }
}

// All media here may lose packets, so the channels are those of RTP.
void run_packets(const std::string& network, std::string_view control, int times) {
  Talk talk(network, burst, control);
  for (int i = 0; i < 16; ++i) talk.send_burst();
  counted_packet(talk, times);
}

// Writes in packets of 1 KiB, so that the copies and checksums of their data hide little.
void run_packet_writes(size_t bytes, int times) {
  Talk talk("sim:counted?mtu=1024");
  const Segment owned = talk.there.device.allocate(bytes).value();
  const RemoteSegment segment = talk.here.device.import(owned.descriptor()).value().segment;
  std::vector<std::byte> data(bytes);
  for (int i = 0; i < 16; ++i) talk.write_to(segment, data);
  counted_packet_write(talk, segment, data, times);
}

// Sends bursts beside other channels of the sender.
void run_packets_beside(bool waiting, int times) {
  Talk talk(network_with("none"), burst, "caqm_r");
  for (int i = 0; i < 16; ++i) talk.send_burst();
  FarPeers peers(talk.here, "caqm_r", waiting);
  counted_packet(talk, times);
  if (waiting) peers.check_that_they_wait(uint64_t{burst} * static_cast<uint64_t>(times));
}

void run_meter(std::string_view name, int times) {
  alignas(64) std::byte storage[congestion::PortMeter::storage];
  congestion::PortMeter* const meter = congestion::find_port_meter(name)->make(storage, {});
  counted_meter(*meter, name, times);
  meter->~PortMeter();
}

void run_hop(std::string_view meter, int times) {
  fabric::Switch at({.ports = 16, .keeps = fabric::Keeps::until_collected, .meter = meter});
  for (uint32_t port = 0; port < 16; ++port) {
    at.connect(port, {.bytes_per_second = 12'500'000'000, .host = true});
    at.routes().attach(port + 1, port);
  }
  counted_hop(at, meter, times);
}

// A switch with so many devices, one of which sends to another one.
void run_forward(uint32_t devices, int times) {
  using apps::switches::Forwarder;
  Forwarder forwarder({.hosts = {.ports = devices, .lease = std::chrono::hours(1)},
                       .fabric = {.packets = 64},
                       .port = {.bytes_per_second = 12'500'000'000}});
  const auto place = [](uint32_t cna) { return Endpoint{cna_address(cna), ub_port}; };
  for (uint32_t cna = 1; cna <= devices; ++cna) {
    LinkControl asks{.type = LinkMessage::attach, .cna = cna, .nonce = 1};
    const auto challenge = forwarder.take(control_datagram(asks), place(cna), Ecn::not_ect, Time{});
    asks.cookie = challenge->cookie;
    (void)forwarder.take(control_datagram(asks), place(cna), Ecn::not_ect, Time{});
  }
  std::vector<std::byte> datagram(Load::bytes);
  const std::span<std::byte> all(datagram);
  LinkWord{}.emit(all.first<LinkWord::size>());
  Cna24Nth{.source = devices, .destination = devices - 1}.emit(
      all.subspan<LinkWord::size, Cna24Nth::size>());
  counted_forward(forwarder, datagram, place(devices), times);
}

// `times` packets, of which each port handles a burst at once.
void run_wire(Wire& wire, int times) {
  for (int left = times; left > 0; left -= static_cast<int>(Wire::burst)) {
    counted_transmit(wire);
    counted_arrive(wire);
  }
  if (wire.arrived() != static_cast<size_t>(times)) fail("packets have not arrived");
}

void run_dpdk(int times) {
  Wire wire("dpdk:net_ring0,pair=counted?ip=10.9.0.10/24",
            "dpdk:net_ring1,pair=counted?ip=10.9.0.11/24");
  run_wire(wire, times);
}

#if URMA_IMITATES_VERBS
void run_verbs(int times) {
  test::soft::plug_in({.addresses = {ipv4(10, 9, 0, 1)}});
  Wire wire("verbs:soft0?service=5001", "verbs:soft0?service=5002");
  test::soft::only_pretend();
  run_wire(wire, times);
}
#else
void run_verbs(int) {
  std::fprintf(stderr, "counted: this build has no verbs driver\n");
  std::exit(skipped);
}
#endif

struct Case {
  std::string_view name;
  void (*run)(int times);
};
constexpr Case cases[] = {
    {"register", run_register},
    {"access", run_access},
    {"send", run_send},
    {"post_write", [](int times) { run_mapped(write_8, times); }},
    {"poll_write", [](int times) { run_mapped(write_8, times); }},
    {"post_read", [](int times) { run_mapped(read_8, times); }},
    {"poll_read", [](int times) { run_mapped(read_8, times); }},
    {"post_add", [](int times) { run_mapped(add_1, times); }},
    {"poll_add", [](int times) { run_mapped(add_1, times); }},
    {"lane_write", [](int times) { run_lane(counted_lane_write, times); }},
    {"lane_read", [](int times) { run_lane(counted_lane_read, times); }},
    {"lane_add", [](int times) { run_lane(counted_lane_add, times); }},
    {"packet", [](int times) { run_packets("sim:counted", "", times); }},
    {"packet_ldcp", [](int times) { run_packets(network_with("none"), "ldcp", times); }},
    {"packet_caqm_w", [](int times) { run_packets(network_with("caqm_w"), "caqm_w", times); }},
    {"packet_caqm_r", [](int times) { run_packets(network_with("caqm_r"), "caqm_r", times); }},
    {"packet_64k", [](int times) { run_packet_writes(64 << 10, times); }},
    {"packet_1m", [](int times) { run_packet_writes(1 << 20, times); }},
    {"packet_beside_idle", [](int times) { run_packets_beside(false, times); }},
    {"packet_beside_paced", [](int times) { run_packets_beside(true, times); }},
    {"meter_caqm_w", [](int times) { run_meter("caqm_w", times); }},
    {"meter_caqm_r", [](int times) { run_meter("caqm_r", times); }},
    {"hop_none", [](int times) { run_hop("none", times); }},
    {"hop_caqm_w", [](int times) { run_hop("caqm_w", times); }},
    {"hop_caqm_r", [](int times) { run_hop("caqm_r", times); }},
    {"forward_16", [](int times) { run_forward(16, times); }},
    {"forward_1024", [](int times) { run_forward(1024, times); }},
    {"transmit_dpdk", run_dpdk},
    {"arrive_dpdk", run_dpdk},
    {"transmit_verbs", run_verbs},
    {"arrive_verbs", run_verbs},
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
#ifdef __clang__
    std::printf("clang-%d\n", __clang_major__);
#else
    std::printf("gcc-%d\n", __GNUC__);
#endif
    return 0;
  }
  for (const Case& it : cases) {
    if (it.name == words[1]) return it.run(std::atoi(words[2])), 0;
  }
  fail("no such case");
}
