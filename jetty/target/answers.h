#pragma once

#include <array>

#include "base/slab.h"
#include "jetty/event_sink.h"
#include "jetty/peers.h"
#include "jetty/target/guarded_reads.h"
#include "memseg/segment_table.h"
#include "transport/upper.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

// What the target owes: answers (ATAH) and the data of reads, from the moment they are known until
// the initiator has them. Like acks, answers are owed and paid together: neighbours of one queue
// share a packet. The data of a read is gathered from its segment whenever a packet of it is
// written, under a fresh check: what has been revoked meanwhile leaves as a refusal.
class Answers {
 public:
  Answers(uint32_t capacity, PeerStates& peers, const memseg::SegmentTable& segments,
          EventSink& events);

  // Answers that can still be taken on.
  uint32_t room() const { return records_.capacity() - records_.size(); }

  struct Answer {
    PeerId peer;
    uint32_t rc_id = 0;
    uint32_t tassn = 0;  // wire bits
    Response status = Response::success;
    uint8_t info = 0;
    // The application was told something: its own reply may leave first.
    bool told = false;
    // Of an atomic that brings something back: so many bytes of what it fetched. 0: of no such.
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

  // Offers what is owed to the channels. `polled`: the application polls for the shortest way; then
  // answers to what it was told wait for its reply to leave alone, and while it goes on replying
  // for each other (the last one within 16 us), 64 us or 16 answers long. `replied`: requests of
  // its own leave with this pass.
  void flush(bool polled, bool replied, Time now);
  // When `flush` has something to do, if nothing happens before.
  Time next_deadline() const;

  // Of memory that is not read where it lies: packets that are written from now on are of this fill
  // of the driver's frames, and of fills up to that one nobody reads any more.
  GuardedReads& guarded() { return guarded_; }
  // The owner is told that somebody wanted memory of a guarded segment which is not there.
  void tell_missing(PeerId who, TokenId segment);

  // From the transport; `slot` and generation as they were offered.
  void write(transport::PacketSlot& packet);
  void delivered(transport::SliceRef slice);
  // The channel is gone, and with it the duty: who still wants an answer asks again.
  void down(PeerState& peer);

  // SliceRef::slot of answers; those of requests are below.
  static constexpr uint32_t slot_flag = 1u << 31;

 private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Record {
    Answer answer;
    Read read;
    bool is_read = false;
    bool offered = false;
    uint8_t further = 0;  // neighbours answered with it
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
    bool guarded = false;  // the data is one of `guarded_`
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
  Record* find(transport::SliceRef slice);
  bool offer(uint32_t index);
  bool send_at_once(Record& record);
  Packet packet(const Record& record, uint16_t index);

  PeerStates& peers_;
  const memseg::SegmentTable& segments_;
  EventSink& events_;
  GuardedReads guarded_;
  Slab<Record> records_;
  List ready_;
  List held_;
  uint32_t held_count_ = 0;
  Time held_since_{};
  Time last_told_{};
  Time last_reply_{};
  // The latest unoffered answer of a queue, by a hash of the queue: where the next one may join.
  std::array<uint32_t, 16> latest_;
  uint32_t next_serial_ = 1;
};

}  // namespace urma::jetty
