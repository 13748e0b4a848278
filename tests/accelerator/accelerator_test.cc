// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs, which the processor cannot access, in works and as segments.

#include "base/accelerator_memory.h"
#include "tests/accelerator/gpu.h"
#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Over wrappers everything goes in packets; over the others, what lies in memory of GPUs at both
// ends is copied by a GPU.
constexpr std::string_view mediums[] = {"udp:", "cxl:", "fault():udp:", "fault():cxl:"};
constexpr size_t odd_bytes = (3 << 16) + 4711;  // slices, and a last packet that is not full

// The user's buffers and the owner's segment, each in the memory of a GPU.
struct Ends : UserAndOwner {
  explicit Ends(std::string_view driver, std::string_view options = "")
      : UserAndOwner(driver, options),
        mine(1 << 20),
        theirs(1 << 20, 1),
        buffers(user.device.register_memory(mine.span(), Rights::local_only).value()),
        segment(owner.device.register_memory(theirs.span()).value()),
        there(import(segment)),
        told(user.device.import(owner.line()).value().jetty) {}

  // Writes and reads until the pair is made that carries works between the GPUs, and both keys are
  // known, if there is to be a pair.
  void make_pair() {
    if (medium.text().starts_with("fault")) return;
    for (const Work& work : {write(buffer(16), there), read(buffer(16), there)}) {
      const uint64_t before = user.device.stats().value().carried;
      const auto limit = std::chrono::steady_clock::now() + patience;
      while (user.device.stats().value().carried == before &&
             std::chrono::steady_clock::now() < limit) {
        REQUIRE(run(work) == Status::ok);
      }
      REQUIRE(user.device.stats().value().carried > before);
    }
  }

  std::span<std::byte> buffer(size_t bytes) const { return mine.span().subspan(100, bytes); }
  void set_buffer(std::span<const std::byte> data) { mine.set(data, 100); }
  std::vector<std::byte> got(size_t bytes) const { return mine.get(100, bytes); }

  GpuBytes mine;
  GpuBytes theirs;
  Segment buffers;
  Segment segment;
  RemoteSegment there;
  RemoteJetty told;
};

TEST_CASE("works between memory of GPUs move each byte, for any size") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    ends.make_pair();
    for (const size_t bytes : {size_t{1}, size_t{64}, size_t{100}, size_t{5000}, odd_bytes}) {
      INFO(driver << " " << bytes);
      const auto data = bytes_like(bytes, static_cast<unsigned>(bytes));
      ends.set_buffer(data);
      REQUIRE(ends.run(write(ends.buffer(bytes), ends.there, 3)) == Status::ok);
      CHECK(ends.theirs.get(3, bytes) == data);
      ends.set_buffer(std::vector<std::byte>(bytes));
      REQUIRE(ends.run(read(ends.buffer(bytes), ends.there, 3)) == Status::ok);
      CHECK(ends.got(bytes) == data);
      ends.theirs.fill(std::byte{0});
    }
  }
}

TEST_CASE("a GPU carries works between memory of GPUs on one host, and nothing else") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    ends.make_pair();
    const auto before = ends.user.device.stats().value();
    const auto data = bytes_like(odd_bytes, 4);
    ends.set_buffer(data);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(ends.run(write(ends.buffer(odd_bytes), ends.there, 5)) == Status::ok);
      REQUIRE(ends.theirs.get(5, odd_bytes) == data);
      ends.set_buffer(std::vector<std::byte>(odd_bytes));
      REQUIRE(ends.run(read(ends.buffer(odd_bytes), ends.there, 5)) == Status::ok);
      REQUIRE(ends.got(odd_bytes) == data);
      ends.theirs.fill(std::byte{0});
    }
    const auto telling = write(ends.buffer(odd_bytes), ends.there).to(ends.told).immediate(6);
    REQUIRE(ends.run(telling) == Status::ok);
    REQUIRE(collect(ends.owner.jetty, 1).size() == 1);
    CHECK(ends.theirs.get(0, odd_bytes) == data);
    const auto after = ends.user.device.stats().value();
    const bool carried = !driver.starts_with("fault");
    CHECK(after.carried - before.carried == (carried ? 7 : 0));
    CHECK(after.carried_bytes - before.carried_bytes == (carried ? 7 * odd_bytes : 0));
    std::vector<std::byte> back(odd_bytes);
    REQUIRE(ends.run(read(back, ends.there)) == Status::ok);
    CHECK(back == data);
    CHECK(ends.user.device.stats().value().carried == after.carried);
  }
}

TEST_CASE("memory of a GPU at one end only works with any memory at the other end") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    const RemoteSegment mapped = ends.import(ends.owner.segment);
    const auto data = bytes_like(odd_bytes, 1);
    std::vector<std::byte> back(odd_bytes);
    CHECK(ends.run(write(data, ends.there)) == Status::ok);
    CHECK(ends.theirs.get(0, odd_bytes) == data);
    CHECK(ends.run(read(back, ends.there)) == Status::ok);
    CHECK(back == data);
    ends.set_buffer(data);
    CHECK(ends.run(write(ends.buffer(odd_bytes), mapped, 8)) == Status::ok);
    CHECK(same(ends.owner.segment.bytes().subspan(8, odd_bytes), data));
    ends.set_buffer(std::vector<std::byte>(odd_bytes));
    CHECK(ends.run(read(ends.buffer(odd_bytes), mapped, 8)) == Status::ok);
    CHECK(ends.got(odd_bytes) == data);
    // Single small works, which have paths of their own.
    CHECK(ends.run(write(ends.buffer(8), mapped)) == Status::ok);
    CHECK(same(ends.owner.segment.bytes().first(8), std::span(data).first(8)));
    CHECK(ends.run(read(ends.buffer(8), mapped, 16)) == Status::ok);
    CHECK(same(ends.got(8), std::span(data).subspan(8, 8)));
  }
}

// The first messages of a queue take the slow path, later ones are recognised.
TEST_CASE("messages and immediates leave from and arrive in memory of GPUs") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    GpuBytes arrivals(1 << 20);
    const Segment slots = ends.owner.device.register_memory(arrivals.span()).value();
    for (const size_t bytes : {size_t{8}, size_t{8}, size_t{200}, size_t{4000}, size_t{65'536}}) {
      INFO(driver << " " << bytes);
      const auto data = bytes_like(bytes, static_cast<unsigned>(bytes));
      ends.set_buffer(data);
      REQUIRE(ends.owner.jetty.receive(arrivals.span().subspan(64, bytes), 9));
      REQUIRE(ends.run(send(ends.buffer(bytes), ends.told)) == Status::ok);
      auto come = collect(ends.owner.jetty, 1);
      REQUIRE(come.size() == 1);
      CHECK(come[0].bytes == bytes);
      CHECK(arrivals.get(64, bytes) == data);
      REQUIRE(ends.run(write(ends.buffer(bytes), ends.there, 32).to(ends.told).immediate(bytes)) ==
              Status::ok);
      come = collect(ends.owner.jetty, 1);
      REQUIRE(come.size() == 1);
      CHECK(come[0].immediate == bytes);
      CHECK(ends.theirs.get(32, bytes) == data);
    }
  }
}

TEST_CASE("buffers of one work may lie in memory of both kinds") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    ends.make_pair();
    auto data = bytes_like(150'000, 3);
    ends.mine.set(std::span(data).subspan(50'000, 60'000));
    std::vector<std::byte> back(90'000);
    const Buffer parts[] = {
        {data.data(), 50'000}, {ends.mine.span().data(), 60'000}, {data.data() + 110'000, 40'000}};
    CHECK(ends.run(write(parts, ends.there)) == Status::ok);
    CHECK(ends.theirs.get(0, data.size()) == data);
    ends.mine.fill(std::byte{0});
    const Buffer into[] = {
        {back.data(), 50'000}, {ends.mine.span().data(), 60'000}, {back.data() + 50'000, 40'000}};
    CHECK(ends.run(read(into, ends.there)) == Status::ok);
    CHECK(same(std::span(back).first(50'000), std::span(data).first(50'000)));
    CHECK(same(ends.mine.get(0, 60'000), std::span(data).subspan(50'000, 60'000)));
    CHECK(same(std::span(back).last(40'000), std::span(data).last(40'000)));
  }
}

TEST_CASE("datagrams leave from and arrive in memory of GPUs") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    Jetty jetty =
        ends.user.device.jetty({.berths = 8, .receives = 0, .mode = ServiceMode::unreliable})
            .value();
    GpuBytes arrivals(4096);
    const Segment slots = ends.owner.device.register_memory(arrivals.span()).value();
    const auto data = bytes_like(1000, 5);
    ends.set_buffer(data);
    REQUIRE(ends.owner.jetty.receive(arrivals.span(), 1));
    REQUIRE(run_one(jetty, send(ends.buffer(1000), ends.told)).ok());
    REQUIRE(collect(ends.owner.jetty, 1).size() == 1);
    CHECK(arrivals.get(0, 1000) == data);
  }
}

TEST_CASE("many works at a time, with losses: no copy is given away too early") {
  Ends ends("fault(loss=2%,reorder=5%):udp:");
  constexpr size_t each = 20'000;
  constexpr size_t count = 40;
  const auto data = bytes_like(each * count, 8);
  ends.mine.set(data);
  for (int round = 0; round < 4; ++round) {
    ends.theirs.fill(std::byte{0});
    for (size_t i = 0; i < count; ++i) {
      const auto part = ends.mine.span().subspan(i * each, each);
      REQUIRE(ends.user.jetty.post(write(part, ends.there, i * each)) == 1);
    }
    for (const Completion& one : collect(ends.user.jetty, count)) CHECK(one.ok());
    CHECK(ends.theirs.get(0, data.size()) == data);
    ends.mine.fill(std::byte{0});
    for (size_t i = 0; i < count; ++i) {
      const auto part = ends.mine.span().subspan(i * each, each);
      REQUIRE(ends.user.jetty.post(read(part, ends.there, i * each)) == 1);
    }
    for (const Completion& one : collect(ends.user.jetty, count)) CHECK(one.ok());
    CHECK(ends.mine.get(0, data.size()) == data);
  }
}

TEST_CASE("works that use freed memory of a GPU end, and others go on") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    const auto data = bytes_like(odd_bytes, 1);
    std::vector<std::byte> back(odd_bytes);
    ends.theirs.release();
    for (const size_t bytes : {size_t{8}, odd_bytes}) {
      const auto part = std::span(data).first(bytes);
      CHECK(ends.run(write(part, ends.there)) == Status::remote_access);
      CHECK(ends.run(read(std::span(back).first(bytes), ends.there)) == Status::remote_access);
    }
    std::array<Event, 64> told;
    const std::span events = std::span(told).first(ends.owner.device.events(told));
    CHECK(std::ranges::count(events, EventKind::memory_missing, &Event::kind) > 0);

    ends.mine.release();
    const RemoteSegment mapped = ends.import(ends.owner.segment);
    for (const size_t bytes : {size_t{8}, size_t{200}, odd_bytes}) {
      INFO(driver << " " << bytes);
      const auto ended = [&](const Work& work) {
        const Status status = ends.run(work);
        return status == Status::bad_work || status == Status::unknown;
      };
      CHECK(ended(write(ends.buffer(bytes), mapped)));
      CHECK(ended(read(ends.buffer(bytes), mapped)));
      REQUIRE(ends.owner.jetty.receive(back, 1));
      CHECK(ended(send(ends.buffer(std::min<size_t>(bytes, 60'000)), ends.told)));
      // A work without that memory is not concerned.
      CHECK(ends.run(write(std::span(data).first(100), mapped, 4)) == Status::ok);
      CHECK(same(ends.owner.segment.bytes().subspan(4, 100), std::span(data).first(100)));
    }
  }
}

TEST_CASE("a GPU that fails lets no work on its memory succeed") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    const auto data = bytes_like(odd_bytes, 1);
    REQUIRE(ends.run(write(data, ends.there)) == Status::ok);
    fake_cuda_break(1);
    CHECK(ends.run(write(data, ends.there)) == Status::remote_access);
    CHECK(ends.run(write(std::span(data).first(8), ends.there)) == Status::remote_access);
    fake_cuda_break(0);
    CHECK(ends.run(write(std::span(data).first(8), ends.there)) == Status::remote_access);
    CHECK(ends.run(write(data, ends.import(ends.owner.segment))) == Status::ok);
  }
}

TEST_CASE("what processors alone can do is refused for memory of a GPU") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    const auto refused = ends.owner.device.register_memory(ends.theirs.span(), Rights::atomic);
    CHECK(refused.status() == Status::unsupported);
    CHECK(refused.error().message.find("Fix: ") != std::string::npos);
    const auto data = bytes_like(8, 1);
    CHECK(ends.run(write(data, ends.there).notify(ends.there, 64, 5)) == Status::remote_access);
    Jetty jetty = ends.user.device.jetty({.berths = 8, .inline_bytes = 64}).value();
    CHECK(run_one(jetty, write(ends.buffer(8), ends.there).inline_data()).status ==
          Status::bad_work);
    const Segment words = ends.owner.device.allocate(64, Rights::atomic).value();
    const Work adds = fetch_add(ends.import(words), 0, 1).into(ends.buffer(8).data());
    CHECK(run_one(jetty, adds).status == Status::bad_work);
    const RemoteSegment mapped = ends.import(ends.owner.segment);
    if (!mapped.mapped()) continue;
    Lane lane = ends.user.jetty.lane(mapped).value();
    CHECK(lane.write(ends.buffer(8), 0) == Status::unsupported);
    CHECK(lane.read(ends.buffer(8), 0) == Status::unsupported);
  }
}

TEST_CASE("unregistered memory of a GPU is not written any more") {
  for (const std::string_view driver : mediums) {
    Ends ends(driver);
    ends.make_pair();
    const auto data = bytes_like(odd_bytes, 1);
    ends.set_buffer(data);
    for (int i = 0; i < 20; ++i) {
      REQUIRE(ends.user.jetty.post(write(ends.buffer(odd_bytes), ends.there)) == 1);
      if (i == 10) {
        REQUIRE(ends.segment.unregister());
        ends.theirs.fill(std::byte{1});
      }
    }
    size_t refused = 0;
    for (const Completion& one : collect(ends.user.jetty, 20)) {
      CHECK((one.ok() || one.status == Status::remote_access));
      refused += !one.ok();
    }
    CHECK(refused >= 9);
    CHECK(all_are(ends.theirs.get(0, 1 << 20), std::byte{1}));
  }
}

TEST_CASE("several engines copy memory of GPUs, and nothing of the driver is kept") {
  const int before = fake_cuda_held();
  for (const std::string_view driver : mediums) {
    const Medium medium(driver, "?engines=2");
    Side user = Side::open(medium.text(), {.threads = Threads::served});
    Side owner = Side::open(medium.text(), {.threads = Threads::served});
    GpuBytes mine(1 << 20);
    GpuBytes theirs(1 << 20, 1);
    const Segment buffers = user.device.register_memory(mine.span(), Rights::local_only).value();
    const Segment segment = owner.device.register_memory(theirs.span()).value();
    const RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
    const auto data = bytes_like(70'000, 1);
    mine.set(data);
    for (int i = 0; i < 2; ++i) {
      Jetty jetty = user.device.jetty({.berths = 8}).value();
      theirs.fill(std::byte{0});
      CHECK(run_one(jetty, write(mine.span().first(data.size()), there)).ok());
      CHECK(theirs.get(0, data.size()) == data);
    }
    CHECK(fake_cuda_held() > before + 2);
  }
  CHECK(fake_cuda_held() == before);
}

TEST_CASE("only memory that is registered counts as memory of a GPU") {
  GpuBytes memory(5 << 20, 1);
  const auto span = memory.span();
  std::vector<std::byte> host(100);
  CHECK(AcceleratorMemory::owner(span) == memory.number());
  CHECK_FALSE(AcceleratorMemory::owner(host).has_value());
  CHECK_FALSE(AcceleratorMemory::has(span.data()));
  REQUIRE(AcceleratorMemory::add(span, memory.number()));
  REQUIRE(AcceleratorMemory::add(span.first(10), memory.number()));
  CHECK(AcceleratorMemory::number_of(&span.back()) == memory.number());
  CHECK_FALSE(AcceleratorMemory::has(host.data()));
  AcceleratorMemory::remove(span);
  CHECK(AcceleratorMemory::has(span.data()));
  CHECK_FALSE(AcceleratorMemory::has(&span.back()));
  AcceleratorMemory::remove(span.first(10));
  CHECK_FALSE(AcceleratorMemory::has(span.data()));
}

}  // namespace
}  // namespace urma::test
