// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace urma::engine {

// A message between the name services of two devices (docs/protocol.md, names): a line of text.
//   find NUMBER NAME  ->  found NUMBER LINE | none NUMBER
struct NameMessage {
  enum class Kind : uint8_t { find, found, none };

  Kind kind;
  uint32_t number;  // of the question; the answer repeats it
  // The name that is asked for, or the descriptor that is published under it. If the message was
  // read, this is a part of the line.
  std::string_view rest{};
};

// Returns nothing if the line is not such a message. The name or descriptor is not checked.
std::optional<NameMessage> read_name_message(std::string_view line);

// Returns the length of the line.
size_t bytes_of(const NameMessage& message);
// Replaces `line`, in which the caller may have reserved bytes_of(message): then nothing is
// allocated.
void write_name_message(const NameMessage& message, std::string& line);

}  // namespace urma::engine
