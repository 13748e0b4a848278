// SPDX-License-Identifier: Apache-2.0
// Light works (jetty/initiator/light_works.h), beside works that are recorded as soon as they are
// sent: after each history of events both have sent the same packets and completed the same works,
// and both end each work once.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "jetty/transactions.h"
#include "tests/catch.h"
#include "tests/exhaustive/choices.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr PeerId peer{.index = 0, .generation = 1};
constexpr uint32_t window = 4;  // slices
constexpr uint16_t berths = 8;

// A channel over which small packets arrive as soon as they are written, until it is full.
class DirectChannel final : public transport::Channel {
 public:
  bool offer(transport::SliceRef slice, transport::Class, uint32_t) override {
    offered.push_back(slice);
    return true;
  }
  bool writes_at_once() const override { return true; }
  std::byte* begin(uint32_t bytes) override {
    if (full) return nullptr;
    return sent.emplace_back(bytes).data();
  }
  void expect_answers(int32_t change, Time) override {
    awaited += change;
    REQUIRE(awaited >= 0);
  }
  Time last_progress() const override { return {}; }
  const transport::Facts& facts() const override { return facts_; }

  bool full = false;
  int32_t awaited = 0;
  std::vector<std::vector<std::byte>> sent;
  std::vector<transport::SliceRef> offered;

 private:
  const transport::Facts facts_{.packet_bytes = 65536, .tassn_window = window, .reads = 4};
};

class DirectPeer final : public transport::Channels {
 public:
  transport::Channel* channel(PeerId, Time) override { return connected ? link.get() : nullptr; }
  bool knows(PeerId) override { return !over; }
  Eid eid(PeerId) override { return ipv4(10, 0, 0, 9); }
  transport::Why why_not(PeerId) override { return transport::Why::unreachable; }
  transport::Channel* unreliable(PeerId) override { return nullptr; }

  std::unique_ptr<DirectChannel> link = std::make_unique<DirectChannel>();
  bool connected = false;
  bool over = false;
};

class NoEvents final : public jetty::EventSink {
 public:
  void raise(const Event&) override {}
};

// An initiator with one Jetty, which sends to one peer.
class End {
 public:
  // `recorded`: each work is recorded as soon as it is sent.
  explicit End(bool recorded) : recorded_(recorded) {
    jetty::JettyParts parts(queues_, {.operation = 1s});
    jetty_ = transactions_.jetties().create(JettyId(7), TokenValue(1), std::move(parts));
    connect();
    // The first work makes the flow.
    post(true, 8);
    answer(next_answered_, 1, Response::success, 0);
    REQUIRE(poll().size() == 1);
  }
  ~End() {
    lose(transport::Why::left);
    transactions_.initiator().detach(*jetty_);
  }

  void connect() {
    peer_.connected = true;
    transactions_.up(peer, *peer_.link, now_);
    pass();
  }
  void lose(transport::Why why) {
    if (!peer_.connected) return;
    peer_.connected = false;
    peer_.over = why == transport::Why::left;
    transactions_.down(peer, why, now_);
    keep_sent();
    peer_.link = std::make_unique<DirectChannel>();
  }
  void post(bool signalled, size_t bytes) {
    const RemoteJetty to{.peer = peer, .id = JettyId(3), .token = TokenValue(5)};
    Work work = send(std::span(data_).first(bytes), to);
    if (!signalled) work.unsignalled();
    post(work);
  }
  // A write of two slices, of which the second one has the immediate and waits for the first one.
  void post_notifying() {
    const RemoteSegment segment{.peer = peer,
                                .address = 0,
                                .bytes = data_.size(),
                                .token_id = TokenId(1),
                                .token = TokenValue(1),
                                .rights = Rights::write};
    const RemoteJetty to{.peer = peer, .id = JettyId(3), .token = TokenValue(5)};
    post(write(data_, segment).to(to).immediate(9));
  }
  // The peer answers `count` slices from this TASSN on.
  void answer(uint32_t tassn, uint32_t count, Response status, uint8_t info) {
    if (!peer_.connected || tassn + count > given_) return;
    ParsedResponse response;
    response.info = &info_of(TaOpcode::answer);
    response.headers.base = {.opcode = static_cast<uint8_t>(TaOpcode::answer),
                             .tassn = tassn,
                             .status = status,
                             .info = status == Response::success ? uint8_t(count - 1) : info,
                             .rc_id = 7};
    transactions_.initiator().handle_response(peer, response, now_);
    if (status == Response::success && tassn == next_answered_) next_answered_ += count;
    pass();
  }
  void flush() {
    transactions_.initiator().flush(*jetty_, now_);
    pass();
  }
  void fill(bool full) { peer_.link->full = full; }
  void wait(Duration time) {
    now_ += time;
    transactions_.initiator().handle_timers(now_);
    pass();
  }
  std::vector<Completion> poll() {
    std::vector<Completion> out(2 * berths);
    out.resize(queues_->jfc().poll(out));
    return out;
  }

  // The first TASSN that was not answered yet, if answers come in order.
  uint32_t next_answered() const { return next_answered_; }
  const std::vector<std::vector<std::byte>>& sent() {
    keep_sent();
    return sent_;
  }
  bool awaits_answers() const { return peer_.link->awaited > 0; }
  uint32_t open_slices() const { return transactions_.initiator().open_slices(); }
  uint64_t unknown() const { return transactions_.initiator().counters().unknown; }
  uint32_t vacant() const { return queues_->vacant_berths(); }

 private:
  void post(Work work) {
    work.tag(++posted_);
    if (queues_->post({&work, 1}) == 0) --posted_;
    transactions_.initiator().take(*jetty_, berths, now_);
    if (recorded_) transactions_.initiator().flush_memory(nullptr, 0, now_);
    pass();
  }
  // Cuts works that wait, and writes the packets that the channel would ask for.
  void pass() {
    transactions_.initiator().cut(64, now_);
    while (peer_.connected && !peer_.link->offered.empty()) {
      for (const transport::SliceRef slice : std::exchange(peer_.link->offered, {})) {
        std::array<std::byte, TxFrame::head_room> head;
        TxFrame frame;
        frame.head = head.data();
        transport::PacketSlot packet{.slice = slice, .frame = &frame};
        transactions_.write({&packet, 1});
        peer_.link->sent.emplace_back(head.data(), head.data() + frame.head_bytes);
      }
      transactions_.initiator().cut(64, now_);
    }
    keep_sent();
  }
  void keep_sent() {
    for (auto& packet : std::exchange(peer_.link->sent, {})) {
      const auto base = Btah::parse(std::span(packet).first<Btah::size>());
      given_ = std::max(given_, base->tassn + 1);
      sent_.push_back(std::move(packet));
    }
  }

  const bool recorded_;
  Time now_{10s};
  DirectPeer peer_;
  NoEvents events_;
  memseg::SegmentTable segments_{8, SipHash(1, 2)};
  mutable jetty::Transactions transactions_{
      {.jetties = 8, .peers = 2, .flows = 16, .slices = 64, .answers = 64, .assemblies = 64},
      segments_,
      peer_,
      events_,
      1};
  std::shared_ptr<jetty::Queues> queues_ = jetty::Queues::with_own_jfc(berths, 0, 0);
  jetty::Jetty* jetty_ = nullptr;
  std::vector<std::byte> data_ = std::vector<std::byte>(70'000);
  std::vector<std::vector<std::byte>> sent_;
  uint32_t given_ = 0;  // TASSNs
  uint32_t next_answered_ = 0;
  uint64_t posted_ = 0;
};

enum class Happens : uint8_t {
  post,
  post_unsignalled,
  post_large,      // which is offered to the channel
  post_notifying,  // a slice of which waits for another one
  answer_one,      // the next slice was executed
  answer_two,      // the next two were
  answer_late,     // the one after the next was
  not_ready,
  refuse,
  flush,
  full,  // the channel takes no packet past its queue
  lose,
  come_back,
  restart,
  pause,  // without an end
  time_out,
  count
};

void happen(End& end, Happens what) {
  const uint32_t next = end.next_answered();
  switch (what) {
    case Happens::post:
      return end.post(true, 8);
    case Happens::post_unsignalled:
      return end.post(false, 8);
    case Happens::post_large:
      return end.post(true, 5000);
    case Happens::post_notifying:
      return end.post_notifying();
    case Happens::answer_one:
      return end.answer(next, 1, Response::success, 0);
    case Happens::answer_two:
      return end.answer(next, 2, Response::success, 0);
    case Happens::answer_late:
      return end.answer(next + 1, 1, Response::success, 0);
    case Happens::not_ready:
      return end.answer(next, 1, Response::receiver_not_ready, 0);
    case Happens::refuse:
      return end.answer(next, 1, Response::completer_error,
                        static_cast<uint8_t>(CompleterError::remote_abort));
    case Happens::flush:
      return end.flush();
    case Happens::full:
      return end.fill(true);
    case Happens::lose:
      return end.lose(transport::Why::silent);
    case Happens::come_back:
      return end.connect();
    case Happens::restart:
      return end.lose(transport::Why::left);
    case Happens::pause:
      return end.wait(100ms);
    case Happens::time_out:
      return end.wait(2s);
    case Happens::count:
      return;
  }
}

// Both ends, to which the same happens.
class Both {
 public:
  void happen(Happens what) {
    // The peer of a lost channel comes back, at most once; one that has restarted does not.
    if (over_ || (what == Happens::come_back) != lost_) return;
    lost_ = what == Happens::lose;
    over_ = what == Happens::restart;
    test::happen(light_, what);
    test::happen(recorded_, what);
    compare();
  }
  // Ends all works, in both, and checks that each has ended once.
  void end() {
    for (End* end : {&light_, &recorded_}) {
      end->flush();
      end->wait(2s);
      end->lose(transport::Why::left);
    }
    compare();
    REQUIRE(light_.vacant() + unended() == berths);
  }

 private:
  void compare() {
    REQUIRE(light_.sent() == recorded_.sent());
    const std::vector<Completion> here = light_.poll();
    const std::vector<Completion> there = recorded_.poll();
    REQUIRE(here.size() == there.size());
    for (size_t i = 0; i < here.size(); ++i) {
      REQUIRE(here[i].tag == there[i].tag);
      REQUIRE(here[i].status == there[i].status);
      REQUIRE(here[i].bytes == there[i].bytes);
      REQUIRE(std::ranges::find(ended_, here[i].tag) == ended_.end());
      ended_.push_back(here[i].tag);
    }
    REQUIRE(light_.vacant() == recorded_.vacant());
    REQUIRE(light_.open_slices() == recorded_.open_slices());
    REQUIRE(light_.awaits_answers() == recorded_.awaits_answers());
    REQUIRE(light_.unknown() == recorded_.unknown());
  }
  // Berths of unsignalled works that succeeded are given back with the next completion.
  uint32_t unended() const { return berths - recorded_.vacant(); }

  End light_{false};
  End recorded_{true};
  bool lost_ = false;
  bool over_ = false;
  std::vector<uint64_t> ended_;
};

constexpr auto kinds = static_cast<uint32_t>(Happens::count);

TEST_CASE("light works end as recorded ones do, after every history of four events") {
  for (Choices choose; choose.next_round();) {
    Both both;
    both.happen(Happens::post);
    for (int i = 0; i < 3; ++i) both.happen(static_cast<Happens>(choose(kinds)));
    both.end();
  }
}

TEST_CASE("light works end as recorded ones do, after long random histories") {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Prng prng(seed);
    Both both;
    for (int i = 0; i < 24; ++i) {
      const bool posts = prng.below(2) == 0;
      both.happen(static_cast<Happens>(posts ? prng.below(4) : prng.below(kinds)));
    }
    both.end();
  }
}

}  // namespace
}  // namespace urma::test
