// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace urma::nixl {

// A notification: a text from one agent to another one. On the wire it is one message, or several
// if it is long, each with a header:
//
//   bytes  0..3   "UNX1"                 4..5  length of the sender's name (N)     6..7  zero
//          8..15  number of the note    16..19 length of the text     20..23 offset of this part
//         24..    the name, N bytes; then the part of the text
//
// Numbers are little-endian. Parts of one note may arrive in any order. Each but the last one fills
// a message, so that a process cannot make a note of many small parts.
inline constexpr size_t note_header_bytes = 24;
inline constexpr size_t most_message_bytes = 8192;
inline constexpr size_t most_name_bytes = 1024;
inline constexpr size_t most_note_bytes = size_t{64} << 20;
inline constexpr size_t most_begun_bytes = 4 * most_note_bytes;  // of one process

// Returns the messages of a note. The caller keeps to most_name_bytes and most_note_bytes.
std::vector<std::vector<std::byte>> messages_of(std::string_view from, std::string_view text,
                                                uint64_t number);

struct Note {
  std::string from;
  std::string text;
};

// Puts notes together. Messages come from other processes, so any bytes may come: what is not a
// part of a note, or does not fit to the parts that are there, is counted and dropped.
class NoteAssembly {
 public:
  // `sender` tells the processes apart. Returns the note if it is complete with this message.
  std::optional<Note> take(uint64_t sender, std::span<const std::byte> message);
  // Forgets what a process has begun.
  void forget(uint64_t sender);
  uint64_t dropped() const { return dropped_; }

 private:
  struct Begun {
    Note note;
    std::vector<std::pair<size_t, size_t>> parts;  // offset and length, those that are there
    size_t missing = 0;
  };
  using Key = std::pair<uint64_t, uint64_t>;  // the process and its number of the note

  std::map<Key, Begun> begun_;
  std::map<uint64_t, size_t> begun_bytes_;  // of each process that has begun any
  uint64_t dropped_ = 0;
};

}  // namespace urma::nixl
