// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/answers.h"

#include "base/assert.h"
#include "base/copy.h"
#include "jetty/atomics.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

// Answers do not wait any longer once the application has sent no reply for this long. A peer that
// waits for an answer before it goes on loses no more time than this, and only at first.
constexpr Duration longest_silence = std::chrono::microseconds(16);
// Ten round trips of two processes on one host.
constexpr Duration longest_hold = std::chrono::microseconds(64);
constexpr uint32_t most_held = 16;
// After so many answers in a row that waited and that no other one joined, answers do not wait any
// more, except one of many: the peer may send several requests at a time by then.
constexpr uint32_t tries = 4;
constexpr uint32_t between_tries = 1024;

}  // namespace

Answers::Answers(uint32_t capacity, PeerStates& peers, const memseg::SegmentTable& segments,
                 Staging& staging, EventSink& events)
    : peers_(peers), segments_(segments), staging_(staging), events_(events), records_(capacity) {
  latest_.fill(none);
}

Answers::Record& Answers::create(PeerId peer) {
  Record* record = records_.create();
  URMA_ASSERT(record != nullptr, "no more packets are accepted than there is room for answers");
  PeerState& state = peers_.at(peer);
  record->serial = next_serial_++;
  record->next_of_peer = state.first_answer;
  const uint32_t index = records_.index_of(record);
  if (state.first_answer != none) records_.at(state.first_answer).previous_of_peer = index;
  state.first_answer = index;
  ++state.answers;
  return *record;
}

void Answers::destroy(Record& record) {
  PeerState& state = peers_.at(peer_of(record));
  if (record.is_read) --state.reads_in;
  --state.answers;
  (record.previous_of_peer != none ? records_.at(record.previous_of_peer).next_of_peer
                                   : state.first_answer) = record.next_of_peer;
  if (record.next_of_peer != none) {
    records_.at(record.next_of_peer).previous_of_peer = record.previous_of_peer;
  }
  records_.destroy(&record);
}

void Answers::append(List& list, uint32_t index) {
  (list.last != none ? records_.at(list.last).next_owed : list.first) = index;
  list.last = index;
}

// Consecutive successes of one queue are sent as one answer (ATAH.RSPINFO counts the further ones).
bool Answers::joins(Record& record, const Answer& answer) const {
  const Answer& first = record.answer;
  return !record.is_read && !record.offered && first.peer == answer.peer &&
         first.rc_id == answer.rc_id && first.notified == answer.notified &&
         first.status == Response::success && answer.status == Response::success &&
         record.further < max_further_answers && first.fetched_bytes == 0 &&
         answer.fetched_bytes == 0 &&
         answer.tassn == (first.tassn + record.further + 1) % Tassn::modulus;
}

void Answers::add(const Answer& answer, Time now) {
  if (answer.notified) {
    if (held_.first == none) {
      held_count_ = 0;
      held_since_ = now;
    } else {
      held_in_vain_ = 0;
    }
    ++held_count_;
    last_notified_ = now;
  }
  uint32_t& latest = latest_[(answer.peer.index ^ answer.rc_id) % latest_.size()];
  if (latest != none && records_.live(latest) && joins(records_.at(latest), answer)) {
    ++records_.at(latest).further;
    return;
  }
  Record& record = create(answer.peer);
  record.answer = answer;
  latest = records_.index_of(&record);
  append(answer.notified ? held_ : ready_, latest);
}

void Answers::add(const Read& read) {
  Record& record = create(read.peer);
  record.is_read = true;
  record.read = read;
  ++peers_.at(read.peer).reads_in;
  append(ready_, records_.index_of(&record));
}

// Returns whether it pays to hold an answer after the application's reply.
bool Answers::gathers() const {
  return held_in_vain_ < tries || held_in_vain_ % between_tries == 0;
}

void Answers::flush(bool polled, Time now) {
  const bool just_notified = last_notified_ == now;
  const bool conversing = just_notified || (gathers() && now < last_reply_ + longest_silence);
  const bool wait =
      polled && conversing && now < held_since_ + longest_hold && held_count_ < most_held;
  if (held_.first != none && !wait) {
    (ready_.last != none ? records_.at(ready_.last).next_owed : ready_.first) = held_.first;
    ready_.last = held_.last;
    held_ = {};
    if (held_count_ == 1 && last_reply_ >= held_since_) ++held_in_vain_;
  }
  while (ready_.first != none) {
    const uint32_t index = ready_.first;
    const uint32_t next = records_.at(index).next_owed;
    if (!send_at_once(records_.at(index)) && !offer(index)) return;
    ready_.first = next;
    if (next == none) ready_.last = none;
  }
}

Time Answers::next_deadline() const {
  if (ready_.first != none) return Time{};
  if (held_.first == none) return never;
  if (held_count_ >= most_held) return Time{};
  const Time quiet = gathers() ? last_reply_ + longest_silence : Time{};
  const Time silence = std::max(quiet, last_notified_ + Duration(1));
  return std::min(silence, held_since_ + longest_hold);
}

bool Answers::offer(uint32_t index) {
  Record& record = records_.at(index);
  record.offered = peers_.at(peer_of(record))
                       .channel->offer({index | slot_flag, record.serial}, transport::Class::answer,
                                       record.read.bytes);
  return record.offered;
}

Answers::Record* Answers::find(transport::SliceRef slice) {
  const uint32_t index = slice.slot & ~slot_flag;
  if (!records_.live(index)) return nullptr;
  Record& record = records_.at(index);
  return record.serial == slice.generation ? &record : nullptr;
}

// Returns the content of packet `index` as of now.
Answers::Packet Answers::packet(const Record& record, uint16_t index) {
  Packet out;
  const Answer& answer = record.answer;
  if (!record.is_read) {
    out.headers.base = {.opcode = static_cast<uint8_t>(TaOpcode::answer),
                        .tassn = answer.tassn,
                        .status = answer.status,
                        .info = answer.status == Response::success ? record.further : answer.info,
                        .rc_id = answer.rc_id};
    if (answer.fetched_bytes > 0) {
      out.headers.base.opcode = static_cast<uint8_t>(TaOpcode::atomic_response);
      out.fetched_bytes = answer.fetched_bytes;
      out.fetched = answer.fetched;
    }
    return out;
  }
  const Read& read = record.read;
  const uint32_t packet_bytes = peers_.at(read.peer).facts.packet_bytes;
  const uint32_t offset = index * packet_bytes;
  const uint32_t bytes = std::min(packet_bytes, read.bytes - offset);
  memseg::SegmentTable::Access from;
  if (bytes > 0) {
    from = segments_.access(read.token_id, read.token, read.address + offset, bytes, Rights::read);
  }
  const std::byte* data = from.at;
  if (from.guarded) [[unlikely]] {
    data = staging_.copy(from.at, bytes, read.bytes - offset - bytes);
    out.staged = data != nullptr;
    if (data == nullptr) report_missing(read.peer, read.token_id);
  }
  out.headers.base = {.opcode = static_cast<uint8_t>(TaOpcode::read_response),
                      .tassn = read.tassn,
                      .status = Response::success,
                      .info = 0,
                      .rc_id = read.rc_id};
  out.headers.offset.kib = offset / 1024;
  if (bytes > 0 && data == nullptr) {
    out.headers.base.opcode = static_cast<uint8_t>(TaOpcode::answer);
    out.headers.base.status = Response::completer_error;
    out.headers.base.info = static_cast<uint8_t>(CompleterError::remote_abort);
  } else {
    out.data = {data, bytes};
  }
  return out;
}

void Answers::report_missing(PeerId peer, TokenId segment) {
  events_.raise({.kind = EventKind::memory_missing, .segment = segment, .peer = peer});
}

size_t Answers::Packet::emit_head(std::span<std::byte> to) const {
  const size_t bytes = headers.emit(to);
  put_little(fetched, to.subspan(bytes, fetched_bytes));
  return bytes + fetched_bytes;
}

void Answers::write(transport::PacketSlot& slot) {
  const Record* record = find(slot.slice);
  URMA_ASSERT(record != nullptr, "an answer is kept until it is delivered or its channel is gone");
  const Packet out = packet(*record, slot.index);
  TxFrame& frame = *slot.frame;
  const std::span<std::byte> head(frame.head + frame.head_bytes,
                                  TxFrame::head_room - frame.head_bytes);
  frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + out.emit_head(head));
  add_payload({&out.data, 1}, 0, out.data.bytes, frame);
}

// Sends the answer directly into the channel, past its queue. On a medium that permits this, the
// answer has then arrived, so the record is done.
bool Answers::send_at_once(Record& record) {
  const PeerState& peer = peers_.at(peer_of(record));
  if (record.read.bytes > std::min(transport::most_at_once, peer.facts.packet_bytes)) return false;
  transport::Channel& channel = *peer.channel;
  const Packet out = packet(record, 0);
  const auto bytes = static_cast<uint32_t>(out.head_bytes()) + out.data.bytes;
  std::byte* const to = channel.begin(bytes);
  if (to != nullptr) {
    const size_t headers = out.emit_head({to, bytes});
    copy_bytes(to + headers, out.data.data, out.data.bytes);
    channel.end();
    destroy(record);
  }
  if (out.staged) staging_.give_back_last();
  return to != nullptr;
}

void Answers::delivered(transport::SliceRef slice) {
  if (Record* record = find(slice)) destroy(*record);
}

void Answers::down(PeerState& peer) {
  for (List* list : {&ready_, &held_}) {
    List kept;
    for (uint32_t i = list->first; i != none;) {
      Record& record = records_.at(i);
      const uint32_t next = record.next_owed;
      if (!(peer_of(record) == peer.id)) {
        record.next_owed = none;
        append(kept, i);
      }
      i = next;
    }
    *list = kept;
  }
  while (peer.first_answer != none) destroy(records_.at(peer.first_answer));
}

}  // namespace urma::jetty
