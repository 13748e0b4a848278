// SPDX-License-Identifier: Apache-2.0
// The transaction layer of one process, and a fuzzer that is all its peers: it sends requests,
// packets of slices in any order, filler, answers and data of reads, valid and invalid. Meanwhile
// the process posts works of its own, polls, flushes and unregisters, and channels die and are made
// again.
//
// Oracle: no byte changes but in ranges that a request with the right token and rights, or a posted
// buffer, covers; no byte leaves but of readable segments and posted works; each work completes at
// most once, and exactly once by the end; berths and receive slots are all back then.

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "jetty/transactions.h"
#include "tests/fuzz/arena.h"
#include "tests/fuzz/fake_channel.h"
#include "tests/fuzz/input.h"
#include "urma/core/atomic_works.h"
#include "wire/ta_chain.h"

namespace urma::fuzz {
namespace {

using jetty::Jfc;
using jetty::Queues;
using transport::Why;

constexpr uint32_t packet_bytes = 1024;
constexpr uint16_t berths = 8;
constexpr uint16_t receives = 4;
constexpr JettyId jetty_id{1500};
constexpr JettyId sharer_id{1501};
constexpr TokenValue jetty_token{0x1e77};
constexpr uint32_t peers = 2;

struct Registered {
  std::span<std::byte> memory;
  Rights rights;
  std::optional<memseg::SegmentTable::Made> made{};

  TokenId id() const { return made ? made->token.id : TokenId{9}; }
  TokenValue token() const { return made ? made->token.value : TokenValue{9}; }
};

// A slice that a peer is sending.
struct Sending {
  uint32_t peer = 0;
  uint32_t tpmsn = 0;
  uint32_t bytes = 0;
  uint32_t next = 0;
  TaRequest headers;
};

// A slice of this process that has left, as its target knows it.
struct Left {
  uint32_t peer = 0;
  Btah base;
  uint32_t bytes = 0;  // for a read
};

// Checks that each event names its Jetty or its peer.
class Events final : public jetty::EventSink {
 public:
  void raise(const Event& event) override {
    const bool of_jetty = event.kind == EventKind::jetty_error;
    require(of_jetty == (event.jetty != JettyId{}), "an event of a Jetty says which");
    const bool of_stranger =
        event.kind == EventKind::bad_tokens || event.kind == EventKind::guessing || of_jetty;
    require(of_stranger || static_cast<bool>(event.peer), "an event of a peer says whose");
    require(event.count == 1, "each is told once");
  }
};

class Script final : public transport::Channels {
 public:
  Script(const uint8_t* data, size_t size) : input_(data, size) {
    for (uint32_t i = 0; i < peers; ++i) lives_[i] = {i, 1};
    segments_ = {{{arena_->range(4096, 66'000), Rights::read | Rights::write | Rights::atomic},
                  {arena_->range(80'001, 3000), Rights::write},
                  {arena_->range(90'003, 3000), Rights::read},
                  {arena_->range(100'000, 3000), Rights::local_only}}};
    for (Registered& segment : segments_) add(segment);
    make_jetty();
    make_sharer();
    for (uint32_t i = 0; i < peers; ++i) up(i);
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 500; ++steps) step();
    finish();
    arena_->check();
  }

  // Channels
  transport::Channel* channel(PeerId peer, Time) override {
    return knows(peer) ? channels_[peer.index].get() : nullptr;
  }
  bool knows(PeerId peer) override { return peer.index < peers && lives_[peer.index] == peer; }
  Eid eid(PeerId) override { return ipv4(10, 0, 0, 1); }
  Why why_not(PeerId) override { return Why::unreachable; }
  transport::Channel* unreliable(PeerId) override { return nullptr; }

 private:
  using Buffer_ = std::span<std::byte>;

  void step() {
    switch (input_.below(16)) {
      case 0:
        return begin_slice();
      case 1:
      case 2:
      case 3:
        return send_packet();
      case 4:
        return send_filler();
      case 5:
        return send_anything();
      case 6:
      case 7:
        return send_response();
      case 8:
        return post();
      case 9:
        return pull();
      case 10:
        return poll();
      case 11:
        return advance(std::chrono::microseconds(50) * input_.take());
      case 12:
        return input_.chance(200) ? pass() : advance(std::chrono::milliseconds(20) * input_.take());
      case 13:
        return channel_dies_or_comes();
      case 14:
        return change_jetty();
      case 15:
        return change_segment();
    }
  }

  // ---- this process

  void add(Registered& segment) {
    // Some segments share a TokenID.
    const Registered& beside = segments_[input_.below(static_cast<uint32_t>(segments_.size()))];
    const memseg::SegmentTable::Segment what{
        .base = segment.memory.data(), .bytes = segment.memory.size(), .rights = segment.rights};
    memseg::SegmentTable::Made made;
    const auto added = beside.made ? table_.join(beside.made->segment, what, made)
                                   : table_.add(what, TokenPolicy::plain_text, made);
    require(added == memseg::SegmentTable::Added::added,
            "a table that is not full takes a segment");
    segment.made = made;
  }

  void make_jetty() {
    jfc_ = std::make_shared<Jfc>(Queues::entries_of(berths, receives));
    queues_ = std::make_shared<Queues>(berths, receives, jfc_);
    require(jfc_->reserve(queues_->entries()), "a completion queue of its own has room");
    jetty_ = transactions_->jetties().create(jetty_id, jetty_token, {queues_, {}});
    require(jetty_ != nullptr, "there is room for the first Jetty");
    waiting_receives_ = {};
    post_receives();
  }
  // This Jetty takes its receives from the other one, until that one is created again.
  void make_sharer() {
    auto jfc = std::make_shared<Jfc>(1);
    jetty::JettyParts parts(std::make_shared<Queues>(uint16_t{0}, uint16_t{0}, jfc), {});
    parts.receives_from = transactions_->jetties().handle_of(*jetty_);
    sharer_ = transactions_->jetties().create(sharer_id, jetty_token, std::move(parts));
    require(sharer_ != nullptr, "there is room for the second Jetty");
  }
  void remake_sharer() {
    transactions_->target().detach(*sharer_);
    transactions_->initiator().detach(*sharer_);
    transactions_->jetties().destroy(*sharer_);
    make_sharer();
  }

  Buffer_ receive_buffer(uint64_t slot) { return arena_->range(120'000 + slot * 4096, 2500); }
  Buffer_ work_buffer(uint64_t slot) { return arena_->range(150'000 + slot * 8192, 5000); }

  void post_receives() {
    for (uint64_t slot = 0; slot < receives; ++slot) {
      if (waiting_receives_[slot]) continue;
      const Buffer_ all = receive_buffer(slot);
      // Some buffers have several pieces, with a hole between them that must not change.
      const std::array pieces = {Buffer{all.data(), 1000}, Buffer{all.data() + 1100, 1400}};
      const size_t count = slot % 2 == 0 ? 2 : 1;
      if (queues_->receive(std::span(pieces).first(count), slot + 1) == 0) return;
      waiting_receives_[slot] = true;
    }
  }

  RemoteSegment remote_segment(uint32_t peer) const {
    return {.peer = lives_[peer], .address = 0x10000, .bytes = 1 << 20, .rights = Rights{7}};
  }

  void post() {
    const uint64_t slot = input_.below(berths);
    if (works_[slot]) return;
    const uint32_t peer = input_.below(peers);
    Buffer_ buffer = work_buffer(slot).first(input_.take<uint16_t>() % 5001);
    Work work = write(buffer, remote_segment(peer), input_.take());
    const uint32_t kind = input_.below(4);
    if (kind == 1) work = read(buffer, remote_segment(peer), input_.take());
    if (kind == 2) work = urma::send(buffer, {lives_[peer], JettyId(40), TokenValue(1)});
    if (kind == 3) work.to({lives_[peer], JettyId(41), TokenValue(2)});
    if (kind != 1 && input_.chance(64)) {
      kind == 0 ? work.notify(remote_segment(peer), 8 * slot, 7) : work.immediate(7);
    }
    if (kind == 0 && buffer.size() % 4 == 3) {
      const auto word = uint64_t{input_.take()} * 8;
      work = buffer.size() % 8 == 3 ? compare_swap(remote_segment(peer), word, 1, 2)
                                    : atomic_store(remote_segment(peer), word, Update::set, 1);
    }
    if (input_.chance(64)) work.unsignalled();
    work.tag(slot);
    if (queues_->post({&work, 1}) == 0) return;
    works_[slot] = Posted{kind == 1, work.signalled};
    transactions_->initiator().take(*jetty_, 64, now_);
  }

  void poll() {
    std::array<Completion, 4> completions;
    const size_t count = jfc_->poll(completions);
    for (const Completion& completion : std::span(completions).first(count)) {
      const bool arrival = completion.operation == Operation::receive;
      require(completion.jetty == jetty_id || (arrival && completion.jetty == sharer_id),
              "a completion names its Jetty");
      if (arrival) {
        if (completion.tag != 0) end_receive(completion);
        continue;  // otherwise it is the immediate of a write, which uses no buffer
      }
      require(completion.tag <= berths && works_[completion.tag], "a work completes once");
      end_work(completion.tag);
      // The completion implies the unsignalled works whose berths return with it.
    }
    for (uint64_t slot = 0; slot < berths; ++slot) {
      const bool all_back = queues_->vacant_berths() == berths;
      if (all_back && works_[slot] && !works_[slot]->signalled) end_work(slot);
    }
    if (jetty_->state == jetty::JettyState::ready) post_receives();
  }
  void end_receive(const Completion& completion) {
    const uint64_t slot = completion.tag - 1;
    require(slot < receives && waiting_receives_[slot], "a receive completes once");
    require(!completion.ok() || completion.bytes <= 2500, "a message fits into its buffer");
    waiting_receives_[slot] = false;
  }
  void end_work(uint64_t slot) {
    if (works_[slot]->reads) arena_->allow(work_buffer(slot));
    works_[slot].reset();
  }

  // Does the steps of an engine's pass that belong to this layer.
  void pass() {
    auto& initiator = transactions_->initiator();
    initiator.take(*jetty_, 64, now_);
    initiator.handle_timers(now_);
    initiator.cut(64, now_);
    if (input_.chance(128)) transactions_->target().answers().note_reply(now_);
    transactions_->target().answers().flush(polled_, now_);
    if (input_.chance(200)) initiator.settled(fill_, now_);
    transactions_->jetties().wake();
  }

  void advance(Duration by) {
    now_ += by;
    pass();
  }

  void change_jetty() {
    switch (input_.below(8)) {
      case 0:
      case 4:
        flush();
        return;
      case 1:
      case 5:
        jetty_->state = jetty::JettyState::ready;
        return post_receives();
      case 2:
        polled_ = !polled_;
        return;
      case 3:
      case 7:
        return remake_jetty();
      case 6:
        return remake_sharer();
    }
  }
  bool flush() {
    jetty_->state = jetty::JettyState::error;
    auto& initiator = transactions_->initiator();
    while (initiator.take(*jetty_, 64, now_) > 0) {
    }
    initiator.flush(*jetty_, now_);
    transactions_->target().detach(*jetty_);
    transactions_->target().flush_receives(*jetty_);
    return jetty_->outstanding == 0;
  }
  // Destroys the Jetty and creates it again with the same id: the numbering of its slices
  // continues.
  void remake_jetty() {
    if (!flush()) return;
    poll_all();
    transactions_->initiator().detach(*jetty_);
    transactions_->jetties().destroy(*jetty_);
    poll_all();
    make_jetty();
  }
  void poll_all() {
    const auto state = std::exchange(jetty_->state, jetty::JettyState::error);
    while (jfc_->ready()) poll();
    jetty_->state = state;
  }

  void change_segment() {
    Registered& segment = segments_[input_.below(static_cast<uint32_t>(segments_.size()))];
    if (!segment.made) return add(segment);
    const Handle handle = segment.made->segment;
    switch (input_.below(4)) {
      case 0:
        table_.rotate(handle);
        break;
      case 1:
        table_.retire(handle);
        break;
      case 2:
        table_.release(table_.withdraw(handle, true));
        break;
      default:
        table_.release(table_.withdraw(handle, false));
    }
    for (Registered& one : segments_) {
      if (!one.made) continue;
      one.made->token = table_.token(one.made->segment);
      if (table_.root(one.made->segment) == memseg::SegmentTable::none) one.made.reset();
    }
  }

  // ---- channels

  void up(uint32_t peer) {
    channels_[peer] = std::make_unique<FakeChannel>();
    channels_[peer]->progress = now_;
    transactions_->up(lives_[peer], *channels_[peer], now_);
  }
  void down(uint32_t peer, Why why) {
    // The channel has ended already when the layer is notified.
    channels_[peer].reset();
    transactions_->down(lives_[peer], why, now_);
    std::erase_if(sending_, [&](const Sending& slice) { return slice.peer == peer; });
    std::erase_if(left_, [&](const Left& slice) { return slice.peer == peer; });
    if (why == Why::restarted || why == Why::left) lives_[peer].generation += 2;
  }
  void channel_dies_or_comes() {
    const uint32_t peer = input_.below(peers);
    if (!channels_[peer]) return up(peer);
    if (input_.chance(128)) {
      channels_[peer]->full = input_.chance(128);
      return;
    }
    down(peer, static_cast<Why>(input_.below(5)));
  }

  // Makes the layer write packets of offered slices, and reads which slices they belong to.
  void pull() {
    const uint32_t peer = input_.below(peers);
    FakeChannel* channel = channels_[peer].get();
    if (channel == nullptr) return;
    transactions_->initiator().begin_fill(++fill_);
    if (channel->offered.empty()) return deliver(*channel);
    const FakeChannel::Offered slice = channel->offered.front();
    channel->offered.erase(channel->offered.begin());
    const uint32_t packets = slice.bytes == 0 ? 1 : (slice.bytes + 1023) / 1024;
    bool withdrawn = false;
    for (uint32_t i = 0; i < packets && !withdrawn; ++i) {
      withdrawn = write_packet(peer, slice.slice, static_cast<uint16_t>(i), false);
    }
    if (input_.chance(64)) {
      write_packet(peer, slice.slice, static_cast<uint16_t>(input_.below(packets)), true);
    }
    channel->pulled.push_back(slice);
  }
  void deliver(FakeChannel& channel) {
    if (channel.pulled.empty()) return;
    const transport::SliceRef slice = channel.pulled.front().slice;
    channel.pulled.erase(channel.pulled.begin());
    channel.progress = now_;
    transactions_->delivered({}, {&slice, 1}, now_);
  }

  bool write_packet(uint32_t peer, transport::SliceRef slice, uint16_t index, bool again) {
    std::array<std::byte, TxFrame::head_room> head;
    TxFrame frame;
    frame.head = head.data();
    transport::PacketSlot slot{.slice = slice, .index = index, .again = again, .frame = &frame};
    transactions_->write({&slot, 1});
    require(frame.head_bytes <= TxFrame::head_room, "headers fit into the frame");
    for (unsigned i = 0; i < frame.piece_count; ++i) {
      require(may_leave(frame.pieces[i]), "what leaves is readable or was posted");
    }
    const auto bytes = std::span<const std::byte>(head).first(frame.head_bytes);
    if (slot.withdrawn) {
      require(frame.piece_count == 0, "filler carries nothing");
      return true;
    }
    if (const auto request = parse_request(bytes); request && request->info != nullptr) {
      left_.push_back({peer, request->headers.base, request->headers.memory.length});
      if (left_.size() > 32) left_.pop_front();
    } else {
      require(parse_response(bytes).has_value(), "what is written is a request or a response");
    }
    return false;
  }
  bool may_leave(const Piece& piece) {
    const auto inside = [&](std::span<const std::byte> range) {
      return piece.data >= range.data() && piece.data + piece.bytes <= range.data() + range.size();
    };
    for (const Registered& segment : segments_) {
      if (segment.made && has(segment.rights, Rights::read) && inside(segment.memory)) return true;
    }
    for (uint64_t slot = 0; slot < berths; ++slot) {
      if (works_[slot] && !works_[slot]->reads && inside(work_buffer(slot))) return true;
    }
    return false;
  }

  // ---- the peers' requests

  void begin_slice() {
    Sending slice;
    slice.peer = input_.below(peers);
    slice.tpmsn = ++tpmsn_;
    constexpr std::array kinds = {TaOpcode::write, TaOpcode::write_immediate, TaOpcode::send,
                                  TaOpcode::send_immediate, TaOpcode::read};
    TaRequest& headers = slice.headers;
    headers.base.opcode = static_cast<uint8_t>(kinds[input_.below(kinds.size())]);
    headers.base.token_present = !input_.chance(16);
    headers.base.rc_id = 50 + input_.below(3);
    headers.base.tassn =
        input_.chance(200) ? ++tassns_[headers.base.rc_id - 50] % 65536 : input_.take<uint16_t>();
    slice.bytes = input_.chance(128) ? input_.take() * 16u : input_.take<uint16_t>() + 1u;
    const Registered& segment = segments_[input_.below(static_cast<uint32_t>(segments_.size()))];
    headers.memory = {.address = reinterpret_cast<uint64_t>(segment.memory.data()),
                      .token_id = number(segment.id()),
                      .length = slice.bytes};
    // Some addresses are near an end of the segment, or a little beyond it.
    if (input_.chance(128)) headers.memory.address += segment.memory.size() - slice.bytes;
    if (input_.chance(64)) headers.memory.address += input_.below(5) - 2u;
    if (input_.chance(8)) headers.memory.address = input_.take<uint64_t>();
    const bool message = headers.base.opcode <= static_cast<uint8_t>(TaOpcode::send_immediate);
    headers.token.token = input_.mostly(number(message ? jetty_token : segment.token()));
    const JettyId target = headers.base.rc_id == 52 ? sharer_id : jetty_id;
    headers.target.target = input_.chance(16) ? input_.take() : number(target);
    headers.immediate = {.immediate = 0x4444,
                         .token = input_.mostly(number(jetty_token)),
                         .message_length = input_.take<uint32_t>()};
    const bool tells = headers.base.opcode == static_cast<uint8_t>(TaOpcode::write_immediate);
    if (tells && headers.immediate.message_length % 2 == 1) make_notify(headers);
    const bool writes = headers.base.opcode == static_cast<uint8_t>(TaOpcode::write);
    if (writes && headers.immediate.message_length % 4 == 3) make_atomic(slice);
    sending_.push_back(slice);
    if (sending_.size() > 12) sending_.pop_front();
    send_packet();
  }

  // Turns a write with immediate, and a number that was drawn for it, into a write with
  // notification. So the meaning of older inputs does not change otherwise.
  void make_notify(TaRequest& headers) {
    const uint32_t drawn = headers.immediate.message_length / 2;
    const Registered& segment = segments_[drawn % segments_.size()];
    headers.base.opcode = static_cast<uint8_t>(TaOpcode::write_notify);
    headers.notify = {.address = reinterpret_cast<uint64_t>(segment.memory.data()),
                      .token_id = number(segment.id()),
                      .token = number(segment.token()),
                      .value = uint64_t{0x6e6f7469} << 32 | drawn};
    // The address is anywhere within the segment or a little outside of it, more often aligned than
    // not.
    headers.notify.address += drawn / 16 % (segment.memory.size() + 16) - 8u;
    if (drawn / 4 % 4 != 0) headers.notify.address &= ~uint64_t{7};
    if (drawn % 64 == 63) headers.notify.token ^= 1;
  }

  // Turns a write into an atomic in the same way: of any width, more often aligned than not.
  void make_atomic(Sending& slice) {
    const uint32_t drawn = slice.headers.immediate.message_length / 4;
    const auto opcode = static_cast<uint8_t>(first_atomic) + drawn % 9;
    slice.headers.base.opcode = static_cast<uint8_t>(opcode);
    slice.headers.update.update = static_cast<uint8_t>(drawn / 9 % 9);
    slice.headers.memory.length = 1u << drawn / 81 % 5;
    if (drawn % 16 != 0) slice.headers.memory.address &= ~uint64_t{15};
    slice.bytes = slice.headers.memory.length * find_opcode(slice.headers.base.opcode)->operands;
  }

  void send_packet() {
    if (sending_.empty()) return;
    Sending& slice =
        sending_[input_.chance(128) ? sending_.size() - 1
                                    : input_.below(static_cast<uint32_t>(sending_.size()))];
    const uint32_t packets = slice.bytes == 0 ? 1 : (slice.bytes + packet_bytes - 1) / packet_bytes;
    const bool read = slice.headers.base.opcode == static_cast<uint8_t>(TaOpcode::read);
    uint32_t index = slice.next;
    if (input_.chance(32)) index = input_.below(packets);
    if (index >= packets) index = packets - 1;
    slice.next = index + 1;
    TaRequest headers = slice.headers;
    const uint32_t offset = index * packet_bytes;
    uint32_t bytes = read ? 0 : std::min(packet_bytes, slice.bytes - offset);
    if (!read) headers.memory.address += offset;
    headers.offset.kib = offset / 1024;
    bool last = read || index + 1 == packets;
    if (input_.chance(24)) spoil(headers, bytes, last);
    Bytes_ packet(TaRequest::max_size);
    if (find_opcode(headers.base.opcode) == nullptr || !find_opcode(headers.base.opcode)->request) {
      packet.resize(Btah::size);
      headers.base.emit(HeaderBytes<Btah::size>(packet.data(), Btah::size));
    } else {
      packet.resize(headers.emit(packet));
    }
    packet.resize(packet.size() + bytes, static_cast<std::byte>(input_.take()));
    accept(slice.peer, slice.tpmsn, last, false, packet);
    allow(headers, bytes);
  }

  void spoil(TaRequest& headers, uint32_t& bytes, bool& last) {
    switch (input_.below(11)) {
      case 0:
        headers.base.opcode = input_.take();
        break;
      case 1:
        headers.base.tassn = input_.take<uint16_t>();
        break;
      case 2:
        headers.base.rc_id = input_.take();
        break;
      case 3:
        headers.memory.address += input_.take<uint16_t>() - 0x8000u;
        break;
      case 4:
        headers.memory.length = input_.take<uint32_t>();
        break;
      case 5:
        headers.memory.token_id = number(segments_[input_.below(8) % segments_.size()].id());
        break;
      case 6:
        headers.offset.kib = input_.take<uint16_t>();
        break;
      case 7:
        bytes = input_.take<uint16_t>() % 1400;
        break;
      case 8:
        last = !last;
        break;
      case 9:
        headers.token.token = input_.take();
        break;
      case 10:
        headers.base.token_present = !headers.base.token_present;
        break;
    }
  }

  // Allows the bytes that this request may have changed according to the rules, not according to
  // the code.
  void allow(const TaRequest& headers, uint32_t bytes) {
    if (headers.base.opcode == static_cast<uint8_t>(TaOpcode::write_notify)) {
      const Ntfetah& notify = headers.notify;
      if (notify.address % 8 == 0) allow(notify.token_id, notify.token, notify.address, 8);
    }
    const bool message = headers.base.opcode <= static_cast<uint8_t>(TaOpcode::send_immediate);
    if (message || bytes == 0) return allow_receives();
    if (!headers.base.token_present) return;
    allow(headers.memory.token_id, headers.token.token, headers.memory.address, bytes);
    // A packet of a write may come within a slice that began as a message.
    allow_receives();
  }
  void allow(uint32_t token_id, uint32_t token, uint64_t address, uint32_t bytes) {
    for (const Registered& segment : segments_) {
      if (!segment.made || number(segment.id()) != token_id) continue;
      const memseg::SegmentTable::Token& valid = segment.made->token;
      if (number(valid.value) != token && number(valid.older) != token) continue;
      // A segment with the right to atomics may be written by them, too.
      if (!has(segment.rights, Rights::write)) continue;
      const auto base = reinterpret_cast<uint64_t>(segment.memory.data());
      const uint64_t at = address - base;
      if (at > segment.memory.size() || bytes > segment.memory.size() - at) continue;
      arena_->allow(segment.memory.subspan(at, bytes));
    }
  }
  void allow_receives() {
    for (uint64_t slot = 0; slot < receives; ++slot) {
      if (!waiting_receives_[slot]) continue;
      arena_->allow(receive_buffer(slot).first(1000));
      if (slot % 2 == 0) arena_->allow(receive_buffer(slot).subspan(1100, 1400));
    }
  }

  void send_filler() {
    Bytes_ packet(Btah::size);
    Btah base{.tassn = input_.take<uint16_t>(), .rc_id = 50 + input_.below(3)};
    uint32_t peer = input_.below(peers), tpmsn = ++tpmsn_;
    if (!sending_.empty() && input_.chance(200)) {
      const Sending& slice = sending_[input_.below(static_cast<uint32_t>(sending_.size()))];
      base = slice.headers.base;
      peer = slice.peer;
      tpmsn = slice.tpmsn;
    }
    base.emit(HeaderBytes<Btah::size>(packet.data(), Btah::size));
    packet.resize(input_.mostly<uint8_t>(Btah::size));
    accept(peer, tpmsn, input_.chance(128), true, packet);
  }

  // Sends a datagram from a known peer or from a stranger.
  void send_datagram() {
    TaRequest send;
    send.base.opcode =
        static_cast<uint8_t>(input_.chance(128) ? TaOpcode::send : TaOpcode::send_immediate);
    send.base.token_present = true;
    send.target.target = number(input_.chance(128) ? jetty_id : sharer_id);
    send.token.token = input_.mostly(number(jetty_token));
    if (input_.chance(16)) send.offset.kib = 1;
    Bytes_ packet(TaRequest::max_size);
    packet.resize(send.emit(packet) + input_.take<uint16_t>() % 3000);
    if (input_.chance(16)) packet.resize(input_.below(40));
    const transport::Received received{
        .peer = input_.chance(128) ? lives_[input_.below(peers)] : PeerId{},
        .last = true,
        .in_order = true,
        .datagram = true,
        .head = packet,
        .bytes = packet};
    require(transactions_->admits(received), "a packet that is never repeated is looked at");
    transactions_->accept(received, now_);
    allow_receives();
  }

  void send_anything() {
    if (input_.chance(64)) return send_datagram();
    const auto bytes = input_.bytes(input_.take());
    accept(input_.below(peers), ++tpmsn_ - input_.below(3), input_.chance(128), input_.chance(64),
           Bytes_(bytes.begin(), bytes.end()));
  }

  // ---- the peers' responses

  void send_response() {
    if (left_.empty()) return;
    const Left& slice = left_[input_.below(static_cast<uint32_t>(left_.size()))];
    const bool read = slice.base.opcode == static_cast<uint8_t>(TaOpcode::read);
    TaResponse response;
    response.base = {.opcode = static_cast<uint8_t>(
                         read && !input_.chance(64) ? TaOpcode::read_response : TaOpcode::answer),
                     .tassn = slice.base.tassn,
                     .status = Response::success,
                     .info = 0,
                     .rc_id = slice.base.rc_id};
    const bool swaps = slice.base.opcode == static_cast<uint8_t>(TaOpcode::compare_swap);
    if (swaps && !input_.chance(64)) {
      response.base.opcode = static_cast<uint8_t>(TaOpcode::atomic_response);
    }
    if (input_.chance(100)) {
      response.base.status = static_cast<Response>(input_.below(8));
      response.base.info = input_.take() & 31;
    }
    if (input_.chance(24)) response.base.tassn += input_.below(5) - 2u;
    response.base.tassn &= 0xffff;
    uint32_t bytes = 0;
    if (response.base.opcode == static_cast<uint8_t>(TaOpcode::read_response)) {
      const uint32_t packets = slice.bytes == 0 ? 1 : (slice.bytes + 1023) / 1024;
      const uint32_t index = input_.below(packets);
      response.offset.kib = index;
      bytes = std::min(packet_bytes, slice.bytes - index * packet_bytes);
      if (input_.chance(24)) response.offset.kib = input_.take<uint16_t>();
      if (input_.chance(24)) bytes = input_.take<uint16_t>() % 2000;
    }
    if (response.base.opcode == static_cast<uint8_t>(TaOpcode::atomic_response)) {
      bytes = input_.chance(32) ? input_.below(20) : 8;
    }
    Bytes_ packet(TaResponse::max_size);
    packet.resize(response.emit(packet));
    packet.resize(packet.size() + bytes, std::byte{0x77});
    accept(slice.peer, ++tpmsn_, true, false, packet);
    for (uint64_t slot = 0; slot < berths; ++slot) {
      if (works_[slot] && works_[slot]->reads) arena_->allow(work_buffer(slot));
    }
  }

  using Bytes_ = std::vector<std::byte>;

  void accept(uint32_t peer, uint32_t tpmsn, bool last, bool withdrawn, const Bytes_& packet) {
    if (!channels_[peer]) return;
    // Filler without a BTAH is a keep-alive, which the transport handles itself.
    if (withdrawn && packet.empty()) return;
    // The copy lies at the end of its own allocation, so that reading beyond it is detected.
    const std::unique_ptr<std::byte[]> copy(new std::byte[packet.size()]);
    std::copy(packet.begin(), packet.end(), copy.get());
    const std::span<const std::byte> bytes(copy.get(), packet.size());
    if (last && !withdrawn && transactions_->accept_expected(lives_[peer], bytes, now_)) return;
    const transport::Received received{.peer = lives_[peer],
                                       .channel = peer,
                                       .slice = tpmsn & 0xffffff,
                                       .last = last,
                                       .withdrawn = withdrawn,
                                       .head = bytes,
                                       .bytes = bytes};
    if (!withdrawn && transactions_->accept_next(received)) return;
    if (transactions_->admits(received)) transactions_->accept(received, now_);
  }

  // ---- the end

  void finish() {
    for (uint32_t i = 0; i < peers; ++i) {
      if (channels_[i]) down(i, Why::left);
    }
    for (int rounds = 0; !flush(); ++rounds) {
      require(rounds < 100, "a flush ends");
      now_ += std::chrono::milliseconds(10);
      transactions_->initiator().handle_timers(now_);
      transactions_->initiator().settled(++fill_, now_);
    }
    poll_all();
    // Berths of unsignalled works that are done return with the next completion.
    Work last = write(std::span<const std::byte>{}, remote_segment(0));
    require(queues_->post({&last.tag(berths), 1}) == 1, "the last berth takes a signalled work");
    works_[berths] = Posted{false, true};
    flush();
    poll_all();
    require(queues_->vacant_berths() == berths, "every berth comes back");
    require(queues_->vacant_receives() == receives, "every receive slot comes back");
    require(transactions_->initiator().open_slices() == 0, "no slice outlives its peer");
    for (const auto& work : works_) require(!work, "every work completes");
    for (const bool waiting : waiting_receives_) require(!waiting, "every receive completes");
  }

  struct Posted {
    bool reads;
    bool signalled;
  };

  Input input_;
  const std::unique_ptr<Arena> arena_ = std::make_unique<Arena>();
  std::array<Registered, 4> segments_;
  memseg::SegmentTable table_{8, SipHash(1, 2)};
  std::array<PeerId, peers> lives_;
  std::array<std::unique_ptr<FakeChannel>, peers> channels_;
  std::shared_ptr<Jfc> jfc_;
  std::shared_ptr<Queues> queues_;
  Events events_;
  const std::unique_ptr<jetty::Transactions> transactions_ =
      std::make_unique<jetty::Transactions>(jetty::Transactions::Limits{.jetties = 2,
                                                                        .peers = 4,
                                                                        .flows = 16,
                                                                        .slices = 24,
                                                                        .answers = 24,
                                                                        .assemblies = 6,
                                                                        .records = 2,
                                                                        .share = 1,
                                                                        .reads = 3},
                                            table_, *this, events_, 1);
  jetty::Jetty* jetty_ = nullptr;
  jetty::Jetty* sharer_ = nullptr;
  Time now_{std::chrono::seconds(100)};
  bool polled_ = false;  // whether the application polls
  std::array<bool, receives> waiting_receives_{};
  std::array<std::optional<Posted>, berths + 1> works_;  // by tag
  std::deque<Sending> sending_;
  std::deque<Left> left_;
  std::array<uint32_t, 3> tassns_{};
  uint32_t tpmsn_ = 0;
  uint64_t fill_ = 0;
};

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::Script(data, size).run();
  return 0;
}
