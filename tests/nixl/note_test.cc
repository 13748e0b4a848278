// SPDX-License-Identifier: Apache-2.0
// The messages of notifications, against what was sent, in any order and with any bytes.
#include "plugins/nixl/note.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/prng.h"
#include "plugins/nixl/transfer.h"
#include "tests/catch.h"

namespace urma::nixl {

TEST_CASE("notes are put together from messages in any order") {
  Prng prng(7);
  NoteAssembly assembly;
  for (int round = 0; round < 50; ++round) {
    struct Message {
      size_t note;
      std::vector<std::byte> bytes;
    };
    std::vector<std::string> texts;
    std::vector<Message> messages;
    for (uint64_t i = 0; i < 5; ++i) {
      const std::string text(prng.below(40'000), static_cast<char>(prng.next()));
      for (auto& one : messages_of("agent", text, i)) {
        CHECK(one.size() <= most_message_bytes);
        messages.push_back({i, std::move(one)});
      }
      texts.push_back(text);
    }
    for (size_t i = messages.size(); i > 1; --i)
      std::swap(messages[i - 1], messages[prng.below(i)]);
    std::vector<bool> whole(texts.size());
    for (const Message& one : messages) {
      if (const auto note = assembly.take(3, one.bytes)) {
        CHECK(note->from == "agent");
        CHECK(note->text == texts[one.note]);
        CHECK(!whole[one.note]);
        whole[one.note] = true;
      }
    }
    CHECK(std::ranges::count(whole, true) == 5);
  }
  CHECK(assembly.dropped() == 0);
}

TEST_CASE("bytes that belong to no note are dropped") {
  Prng prng(11);
  NoteAssembly assembly;
  const auto messages = messages_of("agent", std::string(20'000, 'x'), 1);
  uint64_t whole = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::vector<std::byte> bytes = messages[prng.below(messages.size())];
    const size_t changes = prng.below(4);
    for (size_t i = 0; i < changes; ++i) {
      bytes[prng.below(note_header_bytes + 8)] = static_cast<std::byte>(prng.next());
    }
    if (prng.below(3) == 0) bytes.resize(prng.between(0, bytes.size()));
    if (assembly.take(prng.below(5), bytes)) ++whole;
  }
  CHECK(assembly.dropped() > 10'000);
  CHECK(whole > 0);
}

TEST_CASE("a part of a note that is neither full nor the last one is dropped") {
  NoteAssembly assembly;
  auto messages = messages_of("agent", std::string(20'000, 'x'), 1);
  REQUIRE(messages.size() == 3);
  messages[0].resize(messages[0].size() - 1);
  CHECK_FALSE(assembly.take(1, messages[0]));
  messages[1][note_header_bytes - 4] ^= std::byte{1};  // its offset
  CHECK_FALSE(assembly.take(1, messages[1]));
  CHECK(assembly.dropped() == 2);
  CHECK_FALSE(assembly.take(1, messages[2]));
  CHECK(assembly.dropped() == 2);
}

TEST_CASE("long notes of several processes are put together at the same time") {
  NoteAssembly assembly;
  const std::string text(most_note_bytes, 'y');
  constexpr size_t most = most_begun_bytes / most_note_bytes;
  const auto last_part = [&](uint64_t note) { return messages_of("b", text, note).back(); };
  // Each process begins as many as it may, and one that is too many.
  for (uint64_t sender = 0; sender < 2; ++sender) {
    for (uint64_t note = 0; note < most; ++note)
      CHECK_FALSE(assembly.take(sender, last_part(note)));
    CHECK(assembly.dropped() == sender);
    CHECK_FALSE(assembly.take(sender, last_part(most)));
    CHECK(assembly.dropped() == sender + 1);
  }
  // One that has ended leaves nothing, so its notes have room again.
  assembly.forget(0);
  const auto messages = messages_of("b", text, 7);
  size_t notes = 0;
  for (const auto& one : messages) notes += assembly.take(0, one) ? 1 : 0;
  CHECK(notes == 1);
  // A note that is complete has left its room to others, too.
  for (uint64_t note = 0; note < most; ++note) CHECK_FALSE(assembly.take(0, last_part(note)));
  CHECK(assembly.dropped() == 2);
}

TEST_CASE("pieces that continue each other become one, and long ones several") {
  Prng prng(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Piece> pieces;
    std::vector<Piece> given;
    uint64_t here = 1 << 20;
    uint64_t there = 0;
    for (int i = 0; i < 20; ++i) {
      const uint64_t bytes = prng.below(5) == 0 ? prng.below(uint64_t{3} << 31) : prng.below(100);
      const Piece piece{
          .here = reinterpret_cast<std::byte*>(here), .bytes = bytes, .there = {}, .offset = there};
      given.push_back(piece);
      append(pieces, piece);
      here += bytes + (prng.below(3) == 0 ? prng.below(50) : 0);
      there += bytes + (prng.below(3) == 0 ? prng.below(50) : 0);
    }
    // Both lists say the same about each byte: compare the ends of their runs.
    const auto runs = [](const std::vector<Piece>& list) {
      std::vector<std::array<uint64_t, 3>> out;
      for (const Piece& one : list) {
        const uint64_t at = reinterpret_cast<uintptr_t>(one.here);
        const bool more = !out.empty() && out.back()[0] + out.back()[2] == at &&
                          out.back()[1] + out.back()[2] == one.offset;
        if (more) {
          out.back()[2] += one.bytes;
        } else if (one.bytes != 0) {
          out.push_back({at, one.offset, one.bytes});
        }
      }
      return out;
    };
    CHECK(runs(pieces) == runs(given));
    for (const Piece& one : pieces) CHECK(one.bytes <= max_write_bytes);
    CHECK(pieces.size() >= runs(given).size());
  }
}

}  // namespace urma::nixl
