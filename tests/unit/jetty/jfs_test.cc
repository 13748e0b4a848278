// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfs.h"

#include <array>
#include <set>
#include <vector>

#include "tests/unit/jetty/queue_beside_lists.h"
#include "urma/core/atomic_works.h"

namespace urma::test {
namespace {

using jetty::Berth;
using jetty::Jfs;

constexpr std::span<const std::byte> no_bytes;
constexpr PeerId target_peer{1, 1};
constexpr RemoteJetty target_jetty{.peer = target_peer, .id = JettyId(40), .token = {}};

RemoteSegment segment_of(uint64_t bytes) {
  return {.peer = target_peer,
          .address = 0x10000,
          .bytes = bytes,
          .token_id = TokenId(5),
          .token = TokenValue(6),
          .rights = Rights::read | Rights::write | Rights::atomic};
}

// Posts one work and returns the lease with which the engine takes it.
uint16_t post_one(Jfs& jfs, const Work& work) {
  REQUIRE(jfs.post({&work, 1}) == 1);
  REQUIRE(jfs.waiting() == 1);
  return jfs.take_posted();
}
void end_one(Jfs& jfs, uint16_t lease) {
  jfs.chain(lease, Jfs::none);
  jfs.polled(lease);
}
Status verdict_on(Jfs& jfs, const Work& work) {
  const uint16_t lease = post_one(jfs, work);
  const Status out = jfs.berth(lease).verdict;
  end_one(jfs, lease);
  return out;
}

struct PostedWork {
  uint64_t tag;
  uint64_t bytes;
  bool signalled;
};

class JfsBesideLists final : public QueueBesideLists<Jfs, PostedWork> {
 public:
  explicit JfsBesideLists(uint16_t berths) : QueueBesideLists(berths, 0u, size_t{1}) {}

 private:
  void post() override {
    require_next();
    std::vector<Work> works(below(5));
    std::vector<PostedWork> accepted;
    for (Work& work : works) {
      const PostedWork one = {++next_tag_, prng_.below(100), prng_.chance(0.5)};
      work = write(std::span(memory_).first(one.bytes), segment_of(100)).tag(one.tag);
      if (!one.signalled) work.unsignalled();
      accepted.push_back(one);
    }
    size_t expected = 0;
    while (expected < works.size() && vacant_ > (accepted[expected].signalled ? 0u : 1u)) {
      posted_.push_back(accepted[expected++]);
      --vacant_;
    }
    refused_ += works.size() - expected;
    REQUIRE(queue_.post(works) == expected);
  }
  // Works that wait can be seen in post order.
  void require_next() {
    if (posted_.empty()) return;
    const uint32_t ahead = below(posted_.size());
    REQUIRE(queue_.berth(queue_.next_posted(ahead)).tag == posted_[ahead].tag);
  }
  // Ends some works by one completion.
  void complete() override {
    uint16_t first = Jfs::none;
    for (uint64_t left = 1 + prng_.below(3); left > 0 && !taken_.empty(); --left) {
      const uint16_t lease = release_one();
      queue_.chain(lease, first);
      first = lease;
    }
    queue_.polled(first);
  }
  void require_kept(uint16_t lease, const PostedWork& work) const override {
    const Berth& berth = queue_.berth(lease);
    REQUIRE(berth.tag == work.tag);
    REQUIRE(berth.bytes == work.bytes);
    REQUIRE(berth.signalled == work.signalled);
    REQUIRE(berth.verdict == Status::ok);
  }

  std::array<std::byte, 100> memory_{};
};

TEST_CASE("jfs: works are taken in post order, and keep their berths until they are polled") {
  run_beside_lists<JfsBesideLists>();
}

TEST_CASE("jfs: an unsignalled work never takes the last berth, and stops those behind it") {
  Jfs jfs(2, 0, 1);
  const Work signalled = write(no_bytes, segment_of(8));
  const Work unsignalled = write(no_bytes, segment_of(8)).unsignalled();
  const std::array works = {unsignalled, unsignalled, signalled};
  CHECK(jfs.post(works) == 1);
  CHECK(jfs.post({&unsignalled, 1}) == 0);
  CHECK(jfs.post({&signalled, 1}) == 1);
  CHECK(jfs.post({&signalled, 1}) == 0);
  CHECK(jfs.vacant() == 0);
}

TEST_CASE("jfs: a queue that was never posted to is unused, and one without berths takes nothing") {
  Jfs jfs(4, 0, 1);
  CHECK_FALSE(jfs.used());
  CHECK(jfs.post({}) == 0);
  CHECK_FALSE(jfs.used());
  const Work work = write(no_bytes, segment_of(8));
  jfs.post({&work, 1});
  CHECK(jfs.used());
  Jfs none(0, 0, 1);
  CHECK(none.post({&work, 1}) == 0);
  CHECK_FALSE(none.used());
}

TEST_CASE("jfs: the pieces of a work are its buffers without the empty ones") {
  std::array<std::byte, 64> memory{};
  Jfs jfs(4, 0, 1);
  Prng prng(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<Buffer> buffers(1 + prng.below(max_buffers));
    std::vector<Buffer> full;
    uint32_t bytes = 0;
    for (Buffer& buffer : buffers) {
      buffer = {&memory[prng.below(32)], prng.chance(0.5) ? 0 : 1 + prng.below(32)};
      bytes += static_cast<uint32_t>(buffer.bytes);
      if (buffer.bytes > 0) full.push_back(buffer);
    }
    const uint16_t lease = post_one(jfs, write(buffers, segment_of(1000)));
    // The array belongs to the application again.
    for (Buffer& buffer : buffers) buffer = {};
    const auto pieces = jfs.pieces(lease);
    REQUIRE(jfs.berth(lease).bytes == bytes);
    REQUIRE(pieces.size() == full.size());
    for (size_t i = 0; i < full.size(); ++i) {
      REQUIRE(pieces[i].data == full[i].data);
      REQUIRE(pieces[i].bytes == full[i].bytes);
    }
    end_one(jfs, lease);
  }
}

TEST_CASE("jfs: inline data is copied by the post, for each berth separately") {
  constexpr uint32_t inline_bytes = 24;
  Jfs jfs(3, inline_bytes, 1);
  std::vector<uint16_t> leases;
  for (uint8_t i = 1; i <= 3; ++i) {
    std::array<std::byte, inline_bytes> memory;
    memory.fill(std::byte(i));
    const std::array buffers = {Buffer{memory.data(), 10}, Buffer{}, Buffer{&memory[10], 14}};
    leases.push_back(post_one(jfs, send(buffers, target_jetty).inline_data()));
    memory.fill(std::byte{99});
  }
  for (uint8_t i = 1; i <= 3; ++i) {
    const auto pieces = jfs.pieces(leases[i - 1u]);
    REQUIRE(pieces.size() == 1);
    REQUIRE(pieces[0].bytes == inline_bytes);
    for (const std::byte byte : std::span(pieces[0].data, inline_bytes)) {
      REQUIRE(byte == std::byte(i));
    }
  }
  for (const uint16_t lease : leases) end_one(jfs, lease);

  std::array<std::byte, inline_bytes + 1> memory{};
  const RemoteSegment segment = segment_of(100);
  CHECK(jfs.pieces(post_one(jfs, write(no_bytes, segment).inline_data())).empty());
  CHECK(verdict_on(jfs, write(memory, segment).inline_data()) == Status::bad_work);
  CHECK(verdict_on(jfs, read(std::span(memory).first(1), segment).inline_data()) ==
        Status::bad_work);
}

TEST_CASE("jfs: a work is checked against its segment when it is posted") {
  std::array<std::byte, 64> memory{};
  const std::span all(memory);
  Jfs jfs(4, 0, 1);
  const auto check = [&](const Work& work) { return verdict_on(jfs, work); };
  const RemoteSegment segment = segment_of(64);
  CHECK(check(write(all, segment)) == Status::ok);
  CHECK(check(read(all, segment)) == Status::ok);
  CHECK(check(write(all.first(16), segment, 48)) == Status::ok);
  CHECK(check(write(all.first(16), segment, 49)) == Status::remote_access);
  CHECK(check(read(all.first(1), segment, 64)) == Status::remote_access);
  CHECK(check(write(all, segment, UINT64_MAX - 15)) == Status::remote_access);

  RemoteSegment other = segment;
  other.rights = Rights::read;
  CHECK(check(read(all, other)) == Status::ok);
  CHECK(check(write(all, other)) == Status::remote_access);
  CHECK(check(write(no_bytes, other)) == Status::ok);  // it changes nothing
  CHECK(check(fetch_add(other, 0, 1)) == Status::remote_access);
  other.rights = Rights::write;
  CHECK(check(write(all, other)) == Status::ok);
  CHECK(check(read(all, other)) == Status::remote_access);

  CHECK(check(fetch_add(segment, 56, 1)) == Status::ok);
  CHECK(check(fetch_add(segment, 64, 1)) == Status::remote_access);
  CHECK(check(fetch_add(segment, 4, 1)) == Status::bad_work);  // not aligned
  CHECK(check(fetch_add<uint32_t>(segment, 4, 1)) == Status::ok);
  CHECK(check(detail::atomic_of(Atomic::swap, 16, segment, 0, 1)) == Status::unsupported);
  CHECK(check(detail::atomic_of(Atomic::swap, 3, segment, 0, 1)) == Status::bad_work);
}

TEST_CASE("jfs: an invalid work takes a berth, and says why it will fail") {
  std::array<std::byte, 64> memory{};
  Jfs jfs(4, 0, 1);
  const auto check = [&](const Work& work) { return verdict_on(jfs, work); };
  const RemoteSegment segment = segment_of(64);
  const std::vector<Buffer> too_many_buffers(max_buffers + 1, Buffer{memory.data(), 1});
  const std::array nowhere = {Buffer{nullptr, 1}, Buffer{memory.data(), 1}};
  CHECK(check(write(memory, {})) == Status::bad_work);
  CHECK(check(send(memory, {})) == Status::bad_work);
  CHECK(check(write(too_many_buffers, segment)) == Status::bad_work);
  CHECK(check(write(nowhere, segment)) == Status::bad_work);
  CHECK(check(write({memory.data(), max_write_bytes + 1}, segment)) == Status::bad_work);
  CHECK(check(send({memory.data(), max_send_bytes}, target_jetty)) == Status::ok);
  CHECK(check(send({memory.data(), max_send_bytes + 1}, target_jetty)) == Status::bad_work);

  CHECK(check(write(memory, segment).to(target_jetty).immediate(1)) == Status::ok);
  CHECK(check(read(memory, segment).to(target_jetty).immediate(1)) == Status::bad_work);
  CHECK(check(write(memory, segment).immediate(1)) == Status::bad_work);  // of no peer
  CHECK(check(write(memory, segment).notify(segment, 56, 1)) == Status::ok);
  CHECK(check(write(memory, segment).notify(segment, 57, 1)) == Status::bad_work);
  CHECK(check(write(memory, segment).notify(segment, 64, 1)) == Status::remote_access);
  CHECK(check(write(memory, segment).notify(segment, 0, 1).immediate(1)) == Status::bad_work);
  CHECK(check(send(memory, target_jetty).notify(segment, 0, 1)) == Status::bad_work);
}

TEST_CASE("jfs: a work with a value that its enumeration does not have waits for no other work") {
  Jfs jfs(2, 0, 1);
  Work work = write(no_bytes, segment_of(8)).strong().fenced();
  for (const int wrong : {0, 1, 2}) {
    Work one = work;
    if (wrong == 0) one.order = Order(200);
    if (wrong == 1) one.fence = Fence(200);
    if (wrong == 2) one.operation = Operation(200);
    const uint16_t lease = post_one(jfs, one);
    const Berth& berth = jfs.berth(lease);
    CHECK(berth.verdict == Status::bad_work);
    CHECK(berth.operation == Operation::write);
    CHECK(asks_order(berth) == (wrong == 2));
    end_one(jfs, lease);
  }
  work.operation = Operation::receive;
  CHECK(jfs.berth(post_one(jfs, work)).operation == Operation::write);
}

TEST_CASE("jfs: a queue for datagrams takes only short sends that ask for no order") {
  std::array<std::byte, 64> memory{};
  const std::span all(memory);
  Jfs jfs(4, 0, 1);
  jfs.only_datagrams(32);
  const auto check = [&](const Work& work) { return verdict_on(jfs, work); };
  CHECK(check(send(all.first(32), target_jetty)) == Status::ok);
  CHECK(check(send(all.first(33), target_jetty)) == Status::bad_work);
  CHECK(check(send(all.first(1), target_jetty).strong()) == Status::bad_work);
  CHECK(check(send(all.first(1), target_jetty).fenced()) == Status::bad_work);
  CHECK(check(write(all.first(1), segment_of(64))) == Status::bad_work);
}

TEST_CASE("jfs: operands of atomics and locations of notifications lie beside their own berths") {
  Jfs jfs(4, 0, 1);
  RemoteSegment words = segment_of(64);
  const uint16_t swapped = post_one(jfs, compare_swap(words, 8, 11, 12));
  words.token_id = TokenId(8);
  const uint16_t notifying = post_one(jfs, write(no_bytes, segment_of(64)).notify(words, 16, 13));
  jfs.fetched(swapped, 14);
  jfs.doubt(swapped);
  CHECK(jfs.values(swapped).expected == 11);
  CHECK(jfs.values(swapped).fetched == 14);
  CHECK(jfs.berth(swapped).immediate == 12);
  CHECK(jfs.berth(swapped).doubtful);
  CHECK(jfs.pieces(swapped).empty());
  CHECK(jfs.notify(notifying).address == words.address + 16);
  CHECK(jfs.notify(notifying).token_id == TokenId(8));
  CHECK(jfs.berth(notifying).immediate == 13);
  CHECK(jfs.berth(notifying).token_id == TokenId(5));
  // The next work in the berth has not fetched anything.
  end_one(jfs, swapped);
  end_one(jfs, notifying);
  std::set<uint16_t> leases;
  for (int i = 0; i < 4; ++i) {
    const uint16_t lease = post_one(jfs, fetch_add(words, 0, 1));
    CHECK(jfs.values(lease).fetched == 0);
    CHECK_FALSE(jfs.berth(lease).doubtful);
    leases.insert(lease);
  }
  CHECK(leases.size() == 4);
}

}  // namespace
}  // namespace urma::test
