// SPDX-License-Identifier: Apache-2.0
// Memory that no process can have, and values that their enumerations do not have: works with them
// complete once, as bad_work, and control calls return invalid_argument.

#include <array>
#include <functional>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Ranges that are not memory of any process.
struct Range {
  const char* name;
  uintptr_t address;
  size_t bytes;

  std::byte* data() const { return reinterpret_cast<std::byte*>(address); }
  std::span<std::byte> span() const { return {data(), bytes}; }
  Buffer buffer() const { return {data(), bytes}; }
};
constexpr uintptr_t upper_half = uintptr_t{1} << 63;
constexpr Range ranges[] = {
    {"null, 1 byte", 0, 1},
    {"null, 64 bytes", 0, 64},
    {"null, a packet", 0, 1500},
    {"null, as much as a send may have", 0, max_send_bytes},
    {"null, 1 MiB", 0, 1 << 20},
    {"null, as much as a write may have", 0, max_write_bytes},
    {"null, more than that", 0, max_write_bytes + 1},
    {"null, all of the address space", 0, SIZE_MAX},
    {"address 1, all of the address space", 1, SIZE_MAX},
    {"the last byte of the address space", UINTPTR_MAX, 1},
    {"around the end of the address space", UINTPTR_MAX - 7, 64},
    {"the kernel's half", upper_half, 8},
    {"into the kernel's half", upper_half - 8, 64},
};

std::vector<std::byte> good(256);
const Buffer good_buffer{good.data(), good.size()};

struct Peers {
  explicit Peers(const std::string& device)
      : owner(Side::open(device)),
        user(
            Side::open(device, {}, {.berths = 8, .receives = 4, .inline_bytes = max_inline_bytes})),
        words(owner.device.allocate(4096, Rights::read | Rights::write | Rights::atomic).value()),
        remote(user.device.import(owner.line()).value()),
        remote_words(user.device.import(words.descriptor()).value().segment) {}

  // Returns the only completion of a work, and checks that the work has used up no berth or slot.
  Completion end_of(Jetty& jetty, const Work& work) {
    const uint32_t vacant = jetty.vacant_berths();
    const uint32_t receives = jetty.vacant_receives();
    REQUIRE(jetty.post(Work(work).tag(77)) == 1);
    const std::vector<Completion> ended = collect(jetty, 1);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].tag == 77);
    CHECK(jetty.vacant_berths() == vacant);
    CHECK(jetty.vacant_receives() == receives);
    return ended[0];
  }
  Completion end_of(const Work& work) { return end_of(user.jetty, work); }
  void still_works() {
    REQUIRE(end_of(write(good, remote.segment)).ok());
    REQUIRE(end_of(fetch_add(remote_words, 0, 1)).ok());
  }

  Side owner;
  Side user;
  Segment words;
  Imported remote;
  RemoteSegment remote_words;
};

// Each way to name memory in a work. `post` reads the array of buffers, so it lies in `buffers`.
struct Shape {
  const char* name;
  std::function<Work(const Peers&, const Range&, std::array<Buffer, 3>&)> make;
};
const Shape shapes[] = {
    {"write", [](auto& p, auto& r, auto&) { return write(r.span(), p.remote.segment); }},
    {"read", [](auto& p, auto& r, auto&) { return read(r.span(), p.remote.segment); }},
    {"send", [](auto& p, auto& r, auto&) { return send(r.span(), p.remote.jetty); }},
    {"write of inline data",
     [](auto& p, auto& r, auto&) { return write(r.span(), p.remote.segment).inline_data(); }},
    {"send of inline data",
     [](auto& p, auto& r, auto&) { return send(r.span(), p.remote.jetty).inline_data(); }},
    {"write with immediate",
     [](auto& p, auto& r, auto&) {
       return write(r.span(), p.remote.segment).to(p.remote.jetty).immediate(1);
     }},
    {"write with notification",
     [](auto& p, auto& r, auto&) {
       return write(r.span(), p.remote.segment).notify(p.remote_words, 8, 1);
     }},
    {"unsignalled write",
     [](auto& p, auto& r, auto&) { return write(r.span(), p.remote.segment).unsignalled(); }},
    {"strong and fenced write",
     [](auto& p, auto& r, auto&) { return write(r.span(), p.remote.segment).strong().fenced(); }},
    {"gathered write",
     [](auto& p, auto& r, auto& buffers) {
       buffers = {good_buffer, r.buffer(), good_buffer};
       return write(buffers, p.remote.segment);
     }},
    {"scattered read",
     [](auto& p, auto& r, auto& buffers) {
       buffers = {good_buffer, r.buffer(), good_buffer};
       return read(buffers, p.remote.segment);
     }},
    {"gathered send",
     [](auto& p, auto& r, auto& buffers) {
       buffers = {r.buffer(), good_buffer, r.buffer()};
       return send(buffers, p.remote.jetty);
     }},
    {"gathered send of inline data",
     [](auto& p, auto& r, auto& buffers) {
       buffers = {good_buffer, good_buffer, r.buffer()};
       return send(buffers, p.remote.jetty).inline_data();
     }},
};

TEST_CASE("works with memory that no process can have complete as bad_work") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Peers peers(medium.text());
    peers.still_works();
    Jetty datagrams = peers.user.device.jetty({.mode = ServiceMode::unreliable}).value();
    for (const Range& range : ranges) {
      for (const Shape& shape : shapes) {
        INFO(driver << " " << shape.name << ": " << range.name);
        std::array<Buffer, 3> buffers;
        CHECK(peers.end_of(shape.make(peers, range, buffers)).status == Status::bad_work);
      }
      INFO(driver << " datagram: " << range.name);
      const Work datagram = send(range.span(), peers.remote.jetty);
      CHECK(peers.end_of(datagrams, datagram).status == Status::bad_work);
    }
    peers.still_works();
  }
}

TEST_CASE("works whose array of buffers is null but not empty complete as bad_work") {
  const Medium medium("cxl:");
  Peers peers(medium.text());
  peers.still_works();
  for (const size_t count : {size_t{1}, size_t{2}, max_buffers, max_buffers + 1, SIZE_MAX / 16}) {
    const std::span<const Buffer> none(static_cast<const Buffer*>(nullptr), count);
    INFO(count);
    CHECK(peers.end_of(write(none, peers.remote.segment)).status == Status::bad_work);
    CHECK(peers.end_of(read(none, peers.remote.segment)).status == Status::bad_work);
    CHECK(peers.end_of(send(none, peers.remote.jetty)).status == Status::bad_work);
    CHECK_FALSE(peers.user.jetty.receive(none));
  }
  // A null span of works or completions, on the other hand, is empty and does nothing.
  CHECK(peers.user.jetty.post(std::span(static_cast<const Work*>(nullptr), 3)) == 0);
  CHECK(peers.user.jetty.post(write(good, peers.remote.segment)) == 1);
  CHECK(peers.user.jetty.poll(std::span(static_cast<Completion*>(nullptr), 3)) == 0);
  CHECK(collect(peers.user.jetty, 1).size() == 1);
  CHECK(peers.user.device.events(std::span(static_cast<Event*>(nullptr), 3)) == 0);
  Jfce events = peers.user.device.jfce().value();
  CHECK(events.take(std::span(static_cast<uint64_t*>(nullptr), 3)) == 0);
  peers.still_works();
}

TEST_CASE("receive buffers that no process can have are refused and occupy no slot") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Peers peers(medium.text());
    Jfr jfr = peers.user.device.jfr({.receives = 4}).value();
    for (const Range& range : ranges) {
      INFO(driver << ": " << range.name);
      CHECK_FALSE(peers.user.jetty.receive(range.span(), 1));
      CHECK_FALSE(peers.user.jetty.receive(std::array{good_buffer, range.buffer()}, 2));
      CHECK_FALSE(jfr.receive(range.span(), 3));
      CHECK(peers.user.jetty.vacant_receives() == 4);
      CHECK(jfr.vacant_receives() == 4);
    }
    // An empty message needs no memory.
    CHECK(peers.user.jetty.receive(std::span<std::byte>(), 4));
    std::array<std::byte, 10> inbox;
    CHECK(peers.user.jetty.receive(inbox, 5));
    const Imported back = peers.owner.device.import(peers.user.line()).value();
    REQUIRE(peers.owner.jetty.post(send(std::span<std::byte>(), back.jetty)) == 1);
    REQUIRE(peers.owner.jetty.post(send(std::span(good).first(10), back.jetty)) == 1);
    for (const Completion& arrived : collect(peers.user.jetty, 2)) CHECK(arrived.ok());
    for (const Completion& sent : collect(peers.owner.jetty, 2)) CHECK(sent.ok());
  }
}

TEST_CASE("memory that no process can have is not registered") {
  Device device = urma::open("udp:").value();
  for (const Range& range : ranges) {
    for (const Rights rights : {Rights::local_only, Rights::read, Rights::read | Rights::write}) {
      for (const bool guarded : {false, true}) {
        INFO(range.name);
        const auto made =
            device.register_memory(range.span(), {.rights = rights, .guarded = guarded});
        REQUIRE(made.status() == Status::invalid_argument);
        CHECK(made.error().message.find("Fix: ") != std::string::npos);
      }
    }
  }
}

TEST_CASE("offsets in a remote segment that wrap around the address space are refused") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Peers peers(medium.text());
    peers.still_works();
    // Segments that no owner would describe: their descriptors were made by hand, or received from
    // a peer.
    RemoteSegment around = peers.remote_words;
    around.address = UINT64_MAX - 63;
    around.bytes = 4096;
    RemoteSegment all = peers.remote_words;
    all.address = 0;
    all.bytes = UINT64_MAX;
    for (const RemoteSegment& segment : {peers.remote_words, around, all}) {
      for (const uint64_t at : {UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63, uint64_t{56}}) {
        if (&segment != &peers.remote_words && at == 56) continue;
        INFO(driver << " " << segment.address << " + " << at);
        const std::span<std::byte> some = std::span(good).first(64);
        const Work works[] = {write(some, segment, at), read(some, segment, at),
                              write(some, peers.remote.segment).notify(segment, at, 1),
                              fetch_add(segment, at, 1), compare_swap<uint8_t>(segment, at, 1, 2)};
        if (at == 56 && segment.bytes == peers.remote_words.bytes)
          continue;  // this one is inside the segment
        for (const Work& work : works) {
          const Status status = peers.end_of(work).status;
          INFO(name(status));
          CHECK((status == Status::bad_work || status == Status::remote_access));
        }
      }
    }
    peers.still_works();
  }
}

// ---- values that an enumeration does not have

TEST_CASE("works with values that their enumerations do not have complete as bad_work") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Peers peers(medium.text());
    peers.still_works();
    const auto changed = [](Work work, const auto& change) { return change(work), work; };
    const Work plain = write(good, peers.remote.segment);
    const Work sends = send(good, peers.remote.jetty);
    const Work adds = fetch_add(peers.remote_words, 0, 1);
    const Work notifies = Work(plain).notify(peers.remote_words, 8, 1);
    std::vector<Work> works;
    for (const int value : {int{static_cast<int>(Operation::receive)}, 5, 9, 255}) {
      for (const Work& work : {plain, sends, adds}) {
        works.push_back(changed(work, [&](Work& w) { w.operation = Operation(value); }));
      }
    }
    for (const int value : {3, 9, 255}) {
      for (const Work& work : {plain, read(good, peers.remote.segment), sends, adds, notifies}) {
        works.push_back(changed(work, [&](Work& w) { w.order = Order(value); }));
        works.push_back(changed(work, [&](Work& w) { w.fence = Fence(value); }));
        works.push_back(changed(work, [&](Work& w) { w.unsignalled().order = Order(value); }));
      }
      works.push_back(changed(adds, [&](Work& w) { w.segment.atomics = AtomicDomain(value); }));
    }
    for (const int value : {0, 6, 0x10, 255}) {
      works.push_back(changed(adds, [&](Work& w) { w.atomic = Atomic(value); }));
    }
    for (const int value : {8, 255}) {
      works.push_back(atomic_load(peers.remote_words, 0, Update(value), 1));
      works.push_back(atomic_store(peers.remote_words, 0, Update(value), 1));
    }
    for (const int value : {100, 255}) {
      works.push_back(changed(notifies, [&](Work& w) { w.notify_verdict = Status(value); }));
    }
    Jetty no_receives = peers.user.device.jetty({.berths = 4}).value();
    Jetty in_order =
        peers.user.device.jetty({.berths = 4, .chain = true, .in_order = true}).value();
    Jetty datagrams = peers.user.device.jetty({.mode = ServiceMode::unreliable}).value();
    for (size_t i = 0; i < works.size(); ++i) {
      INFO(driver << ", work " << i);
      for (Jetty* const jetty : {&peers.user.jetty, &no_receives, &in_order, &datagrams}) {
        CHECK(peers.end_of(*jetty, works[i]).status == Status::bad_work);
      }
    }
    peers.still_works();
  }
}

TEST_CASE("options with values that their enumerations do not have are refused") {
  Side side = Side::open("udp:");
  const std::string line = side.line();
  const auto refused = [](const auto& result, std::string_view what) {
    INFO(what);
    REQUIRE(result.status() == Status::invalid_argument);
    INFO(result.error().message);
    CHECK(result.error().message.find(what) != std::string::npos);
    CHECK(result.error().message.find("Fix: ") != std::string::npos);
  };
  std::vector<std::byte> memory(4096);
  for (const int value : {9, 77, 255}) {
    refused(urma::open("udp:", {.threads = Threads(value)}), "threads");
    refused(urma::open("udp:", {.balance = Balance(value)}), "balance");
    refused(urma::open("udp:", {.log = {.level = LogLevel(value)}}), "log.level");
    for (Retransmission mode : {sel_rack, gbn_timeout}) {
      Retransmission scope = mode;
      scope.scope = Retransmission::Scope(value);
      Retransmission trigger = mode;
      trigger.trigger = Retransmission::Trigger(value);
      Retransmission rto = mode;
      rto.rto = Retransmission::Rto(value);
      for (const Retransmission& wrong : {scope, trigger, rto}) {
        refused(urma::open("udp:", {.retransmission = wrong}), "retransmission");
        refused(side.device.import(line, {.retransmission = wrong}), "retransmission");
      }
    }
    refused(side.device.jetty({.mode = ServiceMode(value)}), "mode");
    for (const SegmentOptions& options : {SegmentOptions{.rights = Rights(value)},
                                          SegmentOptions{.rights = Rights(value) | Rights::read}}) {
      refused(side.device.allocate(4096, options), "rights");
      refused(side.device.register_memory(memory, options), "rights");
    }
    const SegmentOptions domain{.atomics = AtomicDomain(value)};
    refused(side.device.allocate(4096, domain), "atomics");
    refused(side.device.register_memory(memory, domain), "atomics");
    const SegmentOptions policy{.policy = TokenPolicy(value)};
    refused(side.device.allocate(4096, policy), "policy");
    refused(side.device.register_memory(memory, policy), "policy");
  }
}

TEST_CASE("values that their enumerations do not have can be printed") {
  CHECK(name(Origin(99)) == "unknown");
  CHECK(std::string(name(EventKind(99))) == "no such event");
  CHECK_FALSE(name(Status(200)).empty());
  CHECK_FALSE(name(LogLevel(9)).empty());
  Side side = Side::open("udp:");
  Descriptor made_by_hand = parse_descriptor(side.line()).value();
  made_by_hand.segment->atomics = AtomicDomain(9);
  CHECK(parse_descriptor(to_string(made_by_hand)).status() == Status::invalid_argument);
}

TEST_CASE("durations that are negative or too long are refused") {
  Side side = Side::open("udp:");
  const auto refused = [](const auto& result, std::string_view what) {
    INFO(what);
    REQUIRE(result.status() == Status::invalid_argument);
    INFO(result.error().message);
    CHECK(result.error().message.find(what) != std::string::npos);
    CHECK(result.error().message.find("Fix: ") != std::string::npos);
  };
  for (const Duration negative : {Duration(-1), Duration(-1s), Duration::min()}) {
    refused(urma::open("udp:", {.operation_timeout = negative}), "operation_timeout");
    refused(urma::open("udp:", {.idle_timeout = negative}), "idle_timeout");
    refused(side.device.jetty({.operation_timeout = negative}), "operation_timeout");
    refused(side.device.jetty({.receiver_timeout = negative}), "receiver_timeout");
    refused(side.device.import("urma://localhost/nothing", negative), "limit");
    Retransmission mode = sel_rack;
    mode.rto_base = negative;
    refused(urma::open("udp:", {.retransmission = mode}), "rto_base");
    mode = sel_rack;
    mode.ack_delay = negative;
    refused(urma::open("udp:", {.retransmission = mode}), "ack_delay");
    // These calls return immediately, with the entries that are there.
    CHECK(side.jetty.wait(negative).empty());
    CHECK(side.device.jfce().value().wait(negative).empty());
  }
  for (const Duration long_one : {Duration(1h) + 1ns, Duration::max()}) {
    refused(urma::open("udp:", {.operation_timeout = long_one}), "operation_timeout");
    refused(side.device.jetty({.operation_timeout = long_one}), "operation_timeout");
  }
  refused(side.device.jetty({.operation_timeout = 1us}), "operation_timeout");
  CHECK(side.device.jetty({.operation_timeout = 1h, .receiver_timeout = Duration{}}).ok());
  // With a timeout of zero, import looks once.
  CHECK(side.device.import("urma://localhost/nothing-here", Duration{}).status() ==
        Status::not_found);
}

TEST_CASE("sizes that are out of range are refused") {
  Side side = Side::open("udp:");
  const auto refused = [](const auto& result) {
    REQUIRE(result.status() == Status::invalid_argument);
    CHECK(result.error().message.find("Fix: ") != std::string::npos);
  };
  constexpr uint32_t most = UINT32_MAX;
  for (const uint32_t wrong : {0u, 1'000'001u, most}) {
    refused(urma::open("udp:", {.limits = {.jetties = wrong}}));
  }
  for (const uint32_t wrong : {0u, 65'537u, most}) {
    refused(urma::open("udp:", {.limits = {.peers = wrong}}));
  }
  for (const uint32_t wrong : {0u, (1u << 20) + 1, most}) {
    refused(urma::open("udp:", {.limits = {.segments = wrong}}));
  }
  for (const uint32_t wrong : {0u, 11u, most}) {
    refused(urma::open("udp:", {.log = {.per_second = wrong}}));
  }
  for (const uint32_t wrong : {32'769u, most}) {
    refused(side.device.jetty({.berths = wrong}));
    refused(side.device.jetty({.receives = wrong}));
  }
  for (const uint32_t wrong : {max_inline_bytes + 1, most}) {
    refused(side.device.jetty({.inline_bytes = wrong}));
  }
  for (const uint32_t wrong : {0u, 17u, 256u, 257u, most}) {
    refused(side.device.jetty({.weight = wrong}));
  }
  for (const uint32_t wrong : {0u, 32'769u, 65'536u, most}) {
    refused(side.device.jfr({.receives = wrong}));
  }
  for (const uint32_t wrong : {0u, (1u << 22) + 1, most}) refused(side.device.jfc(wrong));
  refused(side.device.allocate(0));
  refused(side.device.register_memory(std::span<std::byte>()));
  for (const size_t wrong : {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2, size_t{1} << 62}) {
    const Status status = side.device.allocate(wrong).status();
    CHECK((status == Status::no_resources || status == Status::invalid_argument));
  }
}

TEST_CASE("a group of Jetties refuses other devices' Jetties, and policies that do not exist") {
  Side side = Side::open("udp:", {.threads = Threads::inlined});
  Side other = Side::open("udp:", {.threads = Threads::inlined});
  const auto refused = [](const auto& result) {
    REQUIRE(result.status() == Status::invalid_argument);
    CHECK(result.error().message.find("Fix: ") != std::string::npos);
  };
  refused(side.device.jetty_group({.policy = static_cast<GroupPolicy>(3)}));
  refused(side.device.jetty_group({.id = JettyId(1)}));
  refused(side.device.jetty_group({.id = JettyId(group_bit | 5)}));
  JettyGroup group = side.device.jetty_group({.id = JettyId(5)}).value();
  CHECK(number(group.id()) == (group_bit | 5));
  CHECK(side.device.jetty({.id = JettyId(5)}).status() == Status::address_in_use);
  refused(group.add(other.jetty));
  refused(group.remove(other.jetty));
  CHECK(group.remove(side.jetty).status() == Status::not_found);
  const Jetty moved_to = std::move(other.jetty);
  refused(group.add(other.jetty));
  Device engines = open("udp:?engines=2").value();
  CHECK(engines.jetty_group().status() == Status::unsupported);
}

}  // namespace
}  // namespace urma::test
