// SPDX-License-Identifier: Apache-2.0
// A device that reads memory long after it was given a frame, as a NIC does, and a device that
// reports late what it has read. Memory that was returned to the application must not be read. Each
// test overwrites it with poison, and looks for poison in the packets that leave a device.

#include <algorithm>
#include <map>

#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr std::byte poison{0xee};

void poison_all(std::span<std::byte> bytes) { std::ranges::fill(bytes, poison); }

bool all_poison(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == poison; });
}

// Looks for sixteen bytes of poison in a row. No other data of these tests contains such a row.
bool has_poison(std::span<const std::byte> bytes) {
  std::array<std::byte, 16> row;
  row.fill(poison);
  return !std::ranges::search(bytes, row).empty();
}

// Examines each packet when a device has read it from memory.
class Wire {
 public:
  explicit Wire(SimHosts& hosts) : hosts_(hosts) {
    hosts.network().faults.on_leave = [this](const Endpoint& from,
                                             std::span<const std::byte> packet) {
      if (!(from == watched)) return;
      ++packets;
      bytes += packet.size();
      if (packet.size() > 500) last = hosts_.now();
      poisoned += has_poison(packet);
    };
  }
  ~Wire() { hosts_.network().faults.on_leave = nullptr; }

  void watch(const SimHosts::Host& host) {
    watched = host.device.endpoint();
    packets = bytes = 0;
  }
  // Runs until the device has read this many more bytes.
  void run_until_read(uint64_t more) {
    const uint64_t before = bytes;
    for (int i = 0; i < 1'000'000 && bytes < before + more; ++i) hosts_.run_for(1us);
    REQUIRE(bytes >= before + more);
  }

  Endpoint watched;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t poisoned = 0;
  Time last{};  // when the last packet with data left

 private:
  SimHosts& hosts_;
};

uint64_t frames_sent(SimHosts::Host& host) { return host.device.stats().value().frames_sent; }

void run_until_sent(SimHosts& hosts, SimHosts::Host& host, uint64_t more) {
  const uint64_t before = frames_sent(host);
  for (int i = 0; i < 1'000'000 && frames_sent(host) < before + more; ++i) hosts.run_for(1us);
  REQUIRE(frames_sent(host) >= before + more);
}

// A reader, and the owner of the memory that it reads. The owner's device is late. When a test
// begins, that device holds frames that name the owner's memory.
struct HeldAnswer {
  HeldAnswer(const std::string& name, const std::string& late)
      : hosts(name), wire(hosts), owner(hosts.start(late)), reader(hosts.start()) {
    source = reader.device.import(owner.line).value().segment;
    into.resize(200'000);
    std::ranges::copy(bytes_like(owner.memory.size()), owner.memory.begin());
    REQUIRE(status_of(reader.jetty, read(std::span(into).first(1), source), 5s) == Status::ok);
    hosts.run_for(100ms);
    wire.watch(owner);
  }
  void begin() {
    REQUIRE(reader.jetty.post(read(into, source)) == 1);
    run_until_sent(hosts, owner, 4);
    REQUIRE(wire.packets == 0);
  }

  SimHosts hosts;
  Wire wire;
  SimHosts::Host owner;
  SimHosts::Host reader;
  RemoteSegment source;
  std::vector<std::byte> into;
};

TEST_CASE("unregister waits for the frames of answers that its device has not read") {
  for (const char* late : {"hold=1ms", "hold=1ms&hold_jitter=500us", "hold=500us&settle=500us",
                           "hold=300us&hold_jitter=100us&settle_jitter=1ms&ring=8"}) {
    INFO(late);
    HeldAnswer held(std::string("settle-unregister-") + late, late);
    held.begin();
    REQUIRE(held.owner.segment.unregister().ok());
    poison_all(held.owner.memory);
    const auto done = collect(held.reader.jetty, 1);
    REQUIRE(done.size() == 1);
    CHECK((done[0].ok() || done[0].status == Status::remote_access));
    held.hosts.run_for(50ms);
    CHECK(held.wire.packets > 0);
    CHECK(held.wire.poisoned == 0);
    CHECK_FALSE(has_poison(held.into));
  }
}

TEST_CASE("revoke waits for the frames of answers that its device has not read") {
  HeldAnswer held("settle-revoke", "hold=1ms");
  std::vector<std::byte> more(1000);
  Segment other = held.owner.device.register_memory(more, {.with = &held.owner.segment}).value();
  held.begin();
  REQUIRE(other.revoke().ok());
  poison_all(held.owner.memory);
  held.hosts.run_for(50ms);
  CHECK(held.wire.packets > 0);
  CHECK(held.wire.poisoned == 0);
}

TEST_CASE("retire waits for frames that answer readers with the older token") {
  HeldAnswer held("settle-retire", "hold=1ms");
  held.begin();
  REQUIRE(held.owner.segment.rotate().ok());
  REQUIRE(held.owner.segment.retire().ok());
  // From here on the memory contains bytes that the older token gives no access to.
  poison_all(held.owner.memory);
  held.hosts.run_for(50ms);
  CHECK(held.wire.packets > 0);
  CHECK(held.wire.poisoned == 0);
}

// The reader has left, so the frames are the only reason for which the owner's close waits this
// long.
TEST_CASE("close waits for the frames of answers that its device has not read") {
  HeldAnswer held("settle-close", "hold=700ms");
  held.begin();
  held.hosts.kill(std::move(held.reader));
  held.owner.device.close();
  poison_all(held.owner.memory);
  held.hosts.run_for(1s);
  CHECK(held.wire.packets > 0);
  CHECK(held.wire.poisoned == 0);
}

TEST_CASE("remove_path waits until the frames of its path have settled") {
  SimHosts hosts("settled-path");
  for (const char* late : {"hold=3ms", "settle=3ms"}) {
    INFO(late);
    const std::string path = std::string("sim:settled-path?") + late;
    const std::string text = "paths():" + path + "+" + path;
    SimHosts::Host here = SimHosts::start_at(text, {.berths = 64}, {});
    SimHosts::Host there = SimHosts::start_at(text, {.berths = 64}, {});
    const Imported target = here.device.import(there.line).value();
    const auto bytes = bytes_like(200'000);
    REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
    hosts.run_for(10ms);
    REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);
    hosts.run_for(50us);
    const Time begun = hosts.now();
    REQUIRE(here.device.remove_path(here.device.endpoint()).ok());
    CHECK(hosts.now() - begun >= 2ms);
    CHECK(only_status(here.jetty, 1s) == Status::ok);
    CHECK(same(bytes, std::span(there.memory).first(bytes.size())));
  }
}

// ---- works, and the memory that they are sent from

// An initiator whose device is late, and its target.
struct HeldWork {
  HeldWork(const std::string& name, const std::string& late, const DeviceOptions& device = {})
      : hosts(name),
        wire(hosts),
        here(hosts.start(late, {.berths = 64}, device)),
        there(hosts.start("", {.berths = 4, .receives = 64})),
        target(here.device.import(there.line).value()),
        source(bytes_like(200'000)) {
    REQUIRE(status_of(here.jetty, write(std::span(source).first(1), target.segment), 5s) ==
            Status::ok);
    hosts.run_for(100ms);
    wire.watch(here);
  }
  void cut() {
    hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), true);
    hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), true);
  }
  // Posts the work. Its frames are in the device, which has read none of them.
  void begin(const Work& work) {
    REQUIRE(here.jetty.post(work) == 1);
    run_until_sent(hosts, here, 1);
    REQUIRE(wire.packets == 0);
  }
  void check() {
    poison_all(source);
    hosts.run_for(200ms);
    CHECK(wire.packets > 0);
    CHECK(wire.poisoned == 0);
  }

  SimHosts hosts;
  Wire wire;
  SimHosts::Host here;
  SimHosts::Host there;
  Imported target;
  std::vector<std::byte> source;
};

TEST_CASE("a flushed work ends only when the device has read its memory") {
  for (const size_t bytes : {size_t{1000}, size_t{60'000}, size_t{200'000}}) {
    for (const bool message : {false, true}) {
      const size_t most = message ? std::min<size_t>(bytes, max_send_bytes) : bytes;
      INFO("bytes " << most << (message ? " sent" : " written"));
      HeldWork held("settle-flush-" + std::to_string(bytes) + (message ? "s" : "w"), "hold=30ms");
      held.cut();
      const std::span source = std::span(held.source).first(most);
      held.begin(message ? send(source, held.target.jetty) : write(source, held.target.segment));
      REQUIRE(held.here.jetty.flush().ok());
      std::array<Completion, 2> out;
      CHECK(held.here.jetty.poll(out) == 1);
      held.check();
    }
  }
}

TEST_CASE("works of a destroyed Jetty end only when the device has read their memory") {
  HeldWork held("settle-destroy", "hold=30ms");
  held.cut();
  {
    Jetty jetty = held.here.device.jetty({.berths = 4}).value();
    REQUIRE(jetty.post(write(held.source, held.target.segment)) == 1);
    run_until_sent(held.hosts, held.here, 1);
  }
  held.check();
}

TEST_CASE("unregister of its source ends a work that no pass has seen yet") {
  auto [hosts, here, there, target] = SimPair("unregister-unseen");
  auto bytes = bytes_like(1000);
  Segment source = here.device.register_memory(bytes).value();
  REQUIRE(status_of(here.jetty, write(std::span(bytes).first(1), target.segment, 5000), 1s) ==
          Status::ok);

  REQUIRE(here.jetty.post(write(bytes, target.segment).tag(1)) == 1);
  source.unregister().value();
  std::array<Completion, 8> out;
  CHECK(here.jetty.poll(out) == 1);
  CHECK(out[0].tag == 1);
  poison_all(bytes);
  hosts.run_for(50ms);
  CHECK(!has_poison(there.segment.bytes()));
}

TEST_CASE("unregister of the source of a work waits until the device has read it") {
  HeldWork held("settle-source", "hold=30ms");
  held.cut();
  Segment source = held.here.device.register_memory(held.source).value();
  held.begin(write(held.source, held.target.segment));
  REQUIRE(source.unregister().ok());
  std::array<Completion, 2> out;
  CHECK(held.here.jetty.poll(out) == 1);
  held.check();
}

TEST_CASE("close ends a work only when the device has read its memory") {
  HeldWork held("settle-close-work", "hold=400ms");
  held.cut();
  held.begin(write(held.source, held.target.segment));
  held.here.device.close();
  std::array<Completion, 2> out;
  CHECK(held.here.jetty.poll(out) == 1);
  held.check();
}

// The engine has nothing else to do until then, and no port wakes it for that.
TEST_CASE("a work that has timed out ends as soon as the device has read its memory") {
  for (const Duration settle : {Duration{}, Duration(50ms)}) {
    const std::string late = "hold=50ms&settle=" + std::to_string(settle.count()) + "ns";
    INFO(late);
    HeldWork held("settle-deadline-" + late, late, {.threads = Threads::served});
    Jetty jetty = held.here.device.jetty({.berths = 4, .operation_timeout = 10ms}).value();
    held.cut();
    REQUIRE(jetty.post(write(std::span(held.source).first(1000), held.target.segment)) == 1);
    run_until_sent(held.hosts, held.here, 1);
    CHECK(only_status(jetty, 1s) == Status::unknown);
    const Duration after = held.hosts.now() - held.wire.last;
    CHECK(after >= settle);
    CHECK(after <= settle + 100us);
    held.check();
  }
}

// The peer is stopped for so long that the packets are sent a second time. Then it answers the
// first copy while the device still holds the second one.
// The part with the immediate waits until the data have settled, and then has nowhere to go.
TEST_CASE("a work whose peer leaves while its data settle is unknown, and its Jetty ends") {
  HeldWork held("settle-left", "settle=50ms");
  const Work work = write(held.source, held.target.segment).to(held.target.jetty).immediate(7);
  REQUIRE(held.here.jetty.post(work) == 1);
  held.hosts.run_for(20ms);
  held.there.device.close();
  CHECK(only_status(held.here.jetty, 2s) == Status::unknown);
}

TEST_CASE("an answered work ends only when the device has read its second copy, too") {
  for (const size_t bytes : {size_t{1000}, size_t{200'000}}) {
    INFO("bytes " << bytes);
    HeldWork held("settle-again-" + std::to_string(bytes), "hold=2ms");
    const uint64_t before = held.here.device.stats().value().retransmitted;
    held.hosts.stop(held.there);
    held.begin(write(std::span(held.source).first(bytes), held.target.segment));
    while (held.here.device.stats().value().retransmitted == before) held.hosts.run_for(1us);
    REQUIRE(held.wire.packets > 0);
    held.hosts.stop(held.there, false);
    REQUIRE(only_status(held.here.jetty, 1s) == Status::ok);
    held.check();
  }
}

// An answer of a peer proves nothing about the local device. This peer answers before anything was
// sent, to make the device read memory that was returned to the application.
TEST_CASE("an answer that comes before its request left does not end the work early") {
  SimHosts hosts("settle-early");
  Wire wire(hosts);
  SimHosts::Host here = hosts.start("hold=5ms", {.berths = 4});
  Stranger peer(hosts, "fd00::55");
  peer.patience = 20ms;
  REQUIRE(peer.connect(here.device.endpoint()));
  peer.patience = 1us;
  wire.watch(here);
  Descriptor claimed = parse_descriptor(here.line).value();
  claimed.at = peer.at();
  claimed.eid = peer.at().address;
  claimed.life = Incarnation(peer.life);
  const Imported target = here.device.import(to_string(claimed)).value();
  auto source = bytes_like(1000);
  REQUIRE(here.jetty.post(write(source, target.segment)) == 1);
  run_until_sent(hosts, here, 1);
  REQUIRE(wire.packets == 0);
  // The work is the first slice of the first queue, so the peer can guess its numbers.
  peer.answer(here.jetty.id(), 0);
  for (Completion out; here.jetty.poll({&out, 1}) == 0;) hosts.run_for(1us);
  poison_all(source);
  hosts.run_for(50ms);
  CHECK(wire.packets > 0);
  CHECK(wire.poisoned == 0);
}

TEST_CASE("datagrams in a late device keep their bytes, however many follow") {
  for (const char* late : {"hold=2ms&hold_jitter=1ms", "settle=2ms", "hold=1ms&ring=16"}) {
    INFO(late);
    SimHosts hosts(std::string("settle-datagrams-") + late);
    SimHosts::Host here =
        hosts.start(late, {.berths = 256, .receives = 0, .mode = ServiceMode::unreliable});
    SimHosts::Host there = hosts.start("", {.berths = 4, .receives = 512});
    const RemoteJetty target = here.device.import(there.line).value().jetty;
    std::vector<std::vector<std::byte>> received(512, std::vector<std::byte>(1000));
    for (size_t i = 0; i < received.size(); ++i) REQUIRE(there.jetty.receive(received[i], i));
    uint64_t sent = 0;
    std::vector<std::byte> bytes(1000);
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < 16; ++i) {
        bytes = bytes_like(1000, static_cast<unsigned>(sent));
        REQUIRE(status_of(here.jetty, send(bytes, target).immediate(sent), 1s) == Status::ok);
        ++sent;
      }
      poison_all(bytes);
      hosts.run_for(100us);
    }
    const auto came = collect(there.jetty, sent, 100ms);
    CHECK(came.size() == sent);
    for (const Completion& one : came) {
      CHECK(same(received[one.tag], bytes_like(1000, static_cast<unsigned>(one.immediate))));
    }
  }
}

// ---- receives

TEST_CASE("a message from a late device is not placed in unregistered memory") {
  for (const char* late : {"hold=1ms", "hold_jitter=1ms", "hold=100us&settle=1ms"}) {
    INFO(late);
    auto [hosts, here, there, target] =
        SimPair(std::string("settle-receive-") + late, {.network = std::string("mtu=1024&") + late},
                {.network = std::string("mtu=1024&") + late});
    std::vector<std::byte> memory(64 * 1024);
    Segment segment = there.device.register_memory(memory).value();
    REQUIRE(there.jetty.receive(memory, 1));
    const auto bytes = bytes_like(64 * 1024);
    REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
    REQUIRE(here.jetty.post(send(bytes, target.jetty)) == 1);
    for (int i = 0; i < 100'000 && memory[0] != bytes[0]; ++i) hosts.run_for(1us);
    REQUIRE(memory[0] == bytes[0]);
    REQUIRE(segment.unregister().ok());
    poison_all(memory);
    const auto received = there.jetty.wait(1s);
    REQUIRE(received.size() == 1);
    // All of the message may have arrived before.
    CHECK((received[0].ok() || received[0].status == Status::flushed));
    hosts.run_for(50ms);
    CHECK(all_poison(memory));
  }
}

// ---- a device that has few frames, and is slow to give them back

TEST_CASE("works succeed on a device that has few frames and settles them slowly") {
  for (const char* late : {"ring=1", "ring=3&hold=20us", "hold=100us&hold_jitter=300us",
                           "settle=500us&settle_jitter=500us", "ring=5&settle=50us",
                           "hold=50us&settle=2ms&loss=5%&reorder=5%"}) {
    INFO(late);
    auto [hosts, here, there, target] =
        SimPair(std::string("settle-dry-") + late, {.network = late, .jetty = {.berths = 64}},
                {.network = late});
    const auto bytes = bytes_like(100'000);
    std::vector<std::byte> back(bytes.size());
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 16; ++i) REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);
      for (const Completion& done : collect(here.jetty, 16)) CHECK(done.ok());
      REQUIRE(status_of(here.jetty, read(back, target.segment), 5s) == Status::ok);
      CHECK(same(back, bytes));
    }
  }
}

}  // namespace
}  // namespace urma::test
