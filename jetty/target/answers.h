// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/slab.h"
#include "jetty/event_sink.h"
#include "jetty/peers.h"
#include "jetty/staging.h"
#include "memseg/segment_table.h"
#include "transport/upper.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

// The answers (ATAH) and read data that the target owes, from when they are known until the
// initiator has received them. Like acknowledgements they are sent together: consecutive answers to
// one queue share a packet. The data of a read is gathered from its segment whenever a packet of it
// is written, after a new check: if the segment has been revoked, the packet is a refusal. It knows
// peers and TASSNs, but no works and no Jetties. Only the thread that runs the engine calls it.
class Answers {
 public:
  Answers(uint32_t capacity, PeerStates& peers, const memseg::SegmentTable& segments,
          Staging& staging, EventSink& events);

  // Returns how many more answers can be stored.
  uint32_t room() const { return records_.capacity() - records_.size(); }

  struct Answer {
    PeerId peer;
    uint32_t rc_id = 0;
    uint32_t tassn = 0;  // wire bits
    Response status = Response::success;
    uint8_t info = 0;
    // The application got a completion for the request; the application's own reply may be sent
    // before this answer.
    bool notified = false;
    // For an atomic with a result: the bytes of the result, else 0.
    uint8_t fetched_bytes = 0;
    uint64_t fetched = 0;
  };
  void add(const Answer& answer, Time now);

  struct Read {
    PeerId peer;
    uint32_t rc_id = 0;
    uint32_t tassn = 0;
    TokenId token_id{};
    TokenValue token{};
    uint64_t address = 0;
    uint32_t bytes = 0;
  };
  void add(const Read& read);

  // Requests of the application were sent.
  void note_reply(Time now) { last_reply_ = now; }
  // Offers the owed answers to the channels. `polled`: the application polls for the lowest
  // latency. Then answers to requests that notified it wait, so that its reply is sent first. While
  // it keeps replying (its last reply is at most 16 us old), such answers are gathered for up to 64
  // us or 16 answers. A peer that waits for each answer before it sends its next request would lose
  // this time, so they are gathered only while that has gathered any.
  void flush(bool polled, Time now);
  // Returns when the next call of `flush` is needed if nothing else happens.
  Time next_deadline() const;

  // Raises the event that a peer accessed memory of a guarded segment which is not mapped.
  void report_missing(PeerId peer, TokenId segment);

  // Called for the transport; `slot` and `generation` of the slice are those that were offered.
  void write(transport::PacketSlot& packet);
  void delivered(transport::SliceRef slice);
  // The channel has ended, and its answers are dropped: an initiator that still needs one asks
  // again.
  void down(PeerState& peer);

  // Marks SliceRef::slot of answers; requests have lower numbers.
  static constexpr uint32_t slot_flag = 1u << 31;

 private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Record {
    Answer answer;
    Read read;
    bool is_read = false;
    bool offered = false;
    uint8_t further = 0;  // further slices that it answers
    uint32_t serial = 0;
    uint32_t previous_of_peer = none;
    uint32_t next_of_peer = none;
    uint32_t next_owed = none;
  };
  struct List {
    uint32_t first = none;
    uint32_t last = none;
  };

  struct Packet {
    TaResponse headers;
    Piece data;
    bool staged = false;  // the data is a copy in `staging_`
    uint32_t fetched_bytes = 0;
    uint64_t fetched = 0;

    size_t head_bytes() const { return headers.bytes() + fetched_bytes; }
    size_t emit_head(std::span<std::byte> to) const;
  };

  static PeerId peer_of(const Record& record) {
    return record.is_read ? record.read.peer : record.answer.peer;
  }
  Record& create(PeerId peer);
  void destroy(Record& record);
  void append(List& list, uint32_t index);
  bool joins(Record& record, const Answer& answer) const;
  bool gathers() const;
  Record* find(transport::SliceRef slice);
  bool offer(uint32_t index);
  bool send_at_once(Record& record);
  Packet packet(const Record& record, uint16_t index);

  PeerStates& peers_;
  const memseg::SegmentTable& segments_;
  Staging& staging_;
  EventSink& events_;
  Slab<Record> records_;
  List ready_;
  List held_;
  uint32_t held_count_ = 0;
  Time held_since_{};
  Time last_notified_{};
  Time last_reply_{};
  // How many answers in a row waited after a reply, and no other one joined them.
  uint32_t held_in_vain_ = 0;
  // The latest unoffered answer of a queue, by a hash of the queue: the next answer may join it.
  std::array<uint32_t, 16> latest_;
  uint32_t next_serial_ = 1;
};

}  // namespace urma::jetty
