// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "drivers/frame_pool.h"
#include "jetty/slicer.h"
#include "tests/catch.h"
#include "tests/unit/jetty/pieces.h"
#include "tests/unit/random_headers.h"

namespace urma::test {
namespace {

using jetty::Berth;

using jetty::SlicePacket;

constexpr uint16_t room = 16;  // for the transport header, in front

// A work in its berth, with memory of its own.
struct Posted {
  Scattered memory;
  Berth berth{};

  jetty::NotifyTarget notify{};

  Posted(Operation operation, bool with_immediate, uint32_t bytes, Prng& prng)
      : memory(bytes, prng) {
    berth.operation = operation;
    berth.with_immediate = with_immediate;
    berth.solicited = coin(prng);
    berth.bytes = bytes;
    berth.immediate = random64(prng);
    berth.address = random64(prng) >> 1;
    berth.token_id = TokenId(random_id(prng));
    berth.token = TokenValue(random32(prng));
    berth.target = JettyId(random_id(prng));
    berth.target_token = TokenValue(random32(prng));
    notify = {random64(prng), TokenId(random_id(prng)), TokenValue(random32(prng))};
  }
};

// A packet as it is on the wire, behind the transport header.
struct Written {
  std::vector<std::byte> wire;
  ParsedRequest request;
};

Written written(const SlicePacket& packet) {
  static drivers::FramePool pool(1);
  TxFrame* frame = nullptr;
  REQUIRE(pool.lend({&frame, 1}) == 1);
  std::fill_n(frame->head, TxFrame::head_room, std::byte{0xee});
  frame->head_bytes = room;
  frame->piece_count = frame->tail_bytes = 0;
  write_packet(packet, *frame);
  std::vector<std::byte> wire(frame->bytes());
  drivers::flatten(*frame, wire.data());
  pool.take_back(frame);
  for (size_t i = 0; i < room; ++i) REQUIRE(wire[i] == std::byte{0xee});
  wire.erase(wire.begin(), wire.begin() + room);
  const auto request = parse_request(wire);
  REQUIRE(request);
  REQUIRE(request->info != nullptr);
  return {std::move(wire), *request};  // its data lies in `wire`
}

// Cuts a work as the initiator does and calls `function` with every packet.
template <class Function>
void for_all_packets(const Posted& posted, uint32_t packet_bytes, Function&& function) {
  const Berth& berth = posted.berth;
  SlicePacket slice{.berth = berth,
                    .notify = posted.notify,
                    .pieces = posted.memory.pieces(),
                    .tassn = Tassn::first(0xfffe),
                    .rc_id = 0x51234,
                    .packet_bytes = packet_bytes};
  do {
    slice.bytes = std::min(jetty::slice_bytes, berth.bytes - slice.offset);
    slice.last = slice.offset + slice.bytes == berth.bytes;
    slice.retry = slice.offset % 3 == 1;
    const uint32_t packets =
        berth.operation == Operation::read ? 1 : transport::packets_of(slice.bytes, packet_bytes);
    for (slice.index = 0; slice.index < packets; ++slice.index) {
      function(slice, slice.index, written(slice));
    }
    slice.offset += slice.bytes;
    ++slice.tassn;
  } while (slice.offset < berth.bytes);
}

const uint32_t sizes[] = {0, 1, 1023, 1024, 1025, 5000, 65535, 65536, 65537, 200'000};

TEST_CASE("the packets of a write place each byte once, at its address, in any order") {
  Prng prng(1);
  for (const uint32_t bytes : sizes) {
    for (const bool with_immediate : {false, true}) {
      const Posted posted(Operation::write, with_immediate, bytes, prng);
      const Berth& berth = posted.berth;
      std::map<uint64_t, std::byte> target;
      bool told = false;
      for_all_packets(posted, 4096, [&](const SlicePacket& slice, uint16_t, const Written& packet) {
        const TaRequest& headers = packet.request.headers;
        const bool tells = with_immediate && slice.last;
        REQUIRE(packet.request.info->opcode ==
                (tells ? TaOpcode::write_immediate : TaOpcode::write));
        REQUIRE(headers.memory.token_id == number(berth.token_id));
        REQUIRE(headers.memory.length == slice.bytes);
        REQUIRE(headers.token.token == number(berth.token));
        if (tells) {
          REQUIRE(headers.target.target == number(berth.target));
          REQUIRE(headers.immediate == Immetah{.immediate = berth.immediate,
                                               .token = number(berth.target_token),
                                               .message_length = bytes});
        }
        told = told || tells;
        for (size_t i = 0; i < packet.request.data.size(); ++i) {
          const auto [at, fresh] =
              target.emplace(headers.memory.address + i, packet.request.data[i]);
          REQUIRE(fresh);
        }
      });
      CHECK(told == with_immediate);
      const auto flat = posted.memory.flat();
      REQUIRE(target.size() == flat.size());
      for (size_t i = 0; i < flat.size(); ++i) REQUIRE(target.at(berth.address + i) == flat[i]);
    }
  }
}

// Returns the wire's bytes of the packet, written after that with the number before.
std::vector<std::byte> written_after(SlicePacket packet) {
  static drivers::FramePool pool(2);
  std::array<TxFrame*, 2> frames{};
  REQUIRE(pool.lend(frames) == 2);
  for (TxFrame* frame : frames) {
    frame->head_bytes = room;
    frame->piece_count = frame->tail_bytes = 0;
  }
  --packet.index;
  write_packet(packet, *frames[0]);
  ++packet.index;
  write_further_packet(packet, *frames[0], *frames[1]);
  std::vector<std::byte> wire(frames[1]->bytes());
  drivers::flatten(*frames[1], wire.data());
  for (TxFrame* frame : frames) pool.take_back(frame);
  wire.erase(wire.begin(), wire.begin() + room);
  return wire;
}

TEST_CASE("a packet that is written after another one of its slice has the same bytes") {
  Prng prng(9);
  for (const uint32_t bytes : sizes) {
    for (const Operation operation : {Operation::write, Operation::send}) {
      if (operation == Operation::send && bytes > max_send_bytes) continue;
      for (const unsigned kind : {0u, 1u, 2u}) {
        Posted posted(operation, kind == 1, bytes, prng);
        posted.berth.with_notify = kind == 2 && operation == Operation::write;
        for_all_packets(posted, 1024, [&](const SlicePacket& slice, uint16_t, const Written& one) {
          if (slice.index > 0) REQUIRE(written_after(slice) == one.wire);
        });
      }
    }
  }
}

TEST_CASE("each packet of the last slice of a write with notify has the notification") {
  Prng prng(6);
  for (const uint32_t bytes : sizes) {
    Posted posted(Operation::write, false, bytes, prng);
    posted.berth.with_notify = true;
    size_t placed = 0;
    for_all_packets(posted, 1024, [&](const SlicePacket& slice, uint16_t, const Written& packet) {
      const TaRequest& headers = packet.request.headers;
      REQUIRE(packet.request.info->opcode ==
              (slice.last ? TaOpcode::write_notify : TaOpcode::write));
      REQUIRE(headers.notify == (slice.last ? Ntfetah{.address = posted.notify.address,
                                                      .token_id = number(posted.notify.token_id),
                                                      .token = number(posted.notify.token),
                                                      .value = posted.berth.immediate}
                                            : Ntfetah{}));
      REQUIRE(headers.memory.token_id == number(posted.berth.token_id));
      REQUIRE(headers.token.token == number(posted.berth.token));
      REQUIRE(headers.memory.address == posted.berth.address + placed);
      REQUIRE(headers.memory.length == slice.bytes);
      placed += packet.request.data.size();
    });
    CHECK(placed == bytes);
  }
}

TEST_CASE("the packets of a send have the offset of their bytes in the message") {
  Prng prng(2);
  for (const uint32_t bytes : sizes) {
    if (bytes > max_send_bytes) continue;
    for (const bool with_immediate : {false, true}) {
      const Posted posted(Operation::send, with_immediate, bytes, prng);
      std::vector<std::byte> message(bytes);
      size_t placed = 0;
      for_all_packets(posted, 2048, [&](const SlicePacket&, uint16_t, const Written& packet) {
        const TaRequest& headers = packet.request.headers;
        REQUIRE(packet.request.info->opcode ==
                (with_immediate ? TaOpcode::send_immediate : TaOpcode::send));
        REQUIRE(headers.target.target == number(posted.berth.target));
        REQUIRE(headers.token.token == number(posted.berth.target_token));
        // INFERRED: in a send, the last two fields of IMMETAH are zero.
        if (with_immediate) {
          REQUIRE(headers.immediate == Immetah{.immediate = posted.berth.immediate});
        }
        const size_t offset = headers.offset.kib * 1024;
        REQUIRE(offset + packet.request.data.size() <= bytes);
        std::copy(packet.request.data.begin(), packet.request.data.end(),
                  message.begin() + static_cast<ptrdiff_t>(offset));
        placed += packet.request.data.size();
      });
      CHECK(placed == bytes);
      CHECK((message == posted.memory.flat()));
    }
  }
}

TEST_CASE("a read is one packet for each slice, without data") {
  Prng prng(3);
  for (const uint32_t bytes : sizes) {
    const Posted posted(Operation::read, false, bytes, prng);
    for_all_packets(posted, 1024, [&](const SlicePacket& slice, uint16_t, const Written& packet) {
      REQUIRE(packet.request.info->opcode == TaOpcode::read);
      REQUIRE(packet.request.headers.memory ==
              Maetah{.address = posted.berth.address + slice.offset,
                     .token_id = number(posted.berth.token_id),
                     .length = slice.bytes});
      REQUIRE(packet.request.headers.token.token == number(posted.berth.token));
      REQUIRE(packet.request.data.empty());
    });
  }
}

// UB 4.3.13
TEST_CASE("every packet names its slice, and all but a slice's last are full") {
  Prng prng(4);
  for (const Operation operation : {Operation::write, Operation::read, Operation::send}) {
    const Posted posted(operation, coin(prng), operation == Operation::send ? 9000 : 200'000, prng);
    for_all_packets(
        posted, 1024, [&](const SlicePacket& slice, uint16_t index, const Written& packet) {
          const Btah& base = packet.request.headers.base;
          REQUIRE(base.tassn == slice.tassn.wire());
          REQUIRE(base.rc_id == 0x51234);
          REQUIRE(base.retry == slice.retry);
          REQUIRE(base.solicited == posted.berth.solicited);
          REQUIRE(base.order == Order::none);
          REQUIRE(base.token_present);
          if (operation == Operation::read) return;
          REQUIRE(packet.request.data.size() == std::min(1024u, slice.bytes - index * 1024u));
        });
  }
}

TEST_CASE("a packet that is written again has the same bytes") {
  Prng prng(5);
  const Posted posted(Operation::write, true, 150'000, prng);
  std::vector<std::vector<std::byte>> first, second;
  for (auto* round : {&first, &second}) {
    for_all_packets(posted, 8192, [&](const SlicePacket&, uint16_t, const Written& packet) {
      round->push_back(packet.wire);
    });
  }
  CHECK((first == second));
  CHECK(first.size() == 8 + 8 + 3);
}

TEST_CASE("filler is only the BTAH by which the target passes over the slice") {
  drivers::FramePool pool(1);
  TxFrame* frame = nullptr;
  REQUIRE(pool.lend({&frame, 1}) == 1);
  frame->head_bytes = room;
  frame->piece_count = 0;
  jetty::write_filler(Tassn::first(0xabcd), 0x12345, true, *frame);
  CHECK(frame->bytes() == room + Btah::size);
  const std::span<const std::byte, Btah::size> wire(frame->head + room, Btah::size);
  CHECK(*Btah::parse(wire) == Btah{.tassn = 0xabcd, .retry = true, .rc_id = 0x12345});
}

}  // namespace
}  // namespace urma::test
