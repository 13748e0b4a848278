// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drivers/remote_access.h"
#include "jetty/carrier.h"
#include "urma/core/ids.h"

namespace urma::engine {

// A message between two devices about their pairs (docs/protocol.md, pairs): a line of text.
//   pair NUMBER END      ->  paired NUMBER END | refused NUMBER
//   unpair NUMBER        ->  unpaired NUMBER
//   key NUMBER RANGE     ->  keyed NUMBER ADDRESS BYTES KEY | unkeyed NUMBER
struct PairMessage {
  enum class Kind : uint8_t { pair, paired, refused, unpair, unpaired, key, keyed, unkeyed };

  Kind kind = Kind::pair;
  uint32_t number = 0;                       // the asker's; the answer repeats it
  drivers::RemoteAccess::Description end{};  // pair, paired: the sender's end
  MemoryRange range{};                       // key: what the asker wants to access
  drivers::RemoteAccess::Opened opened{};    // keyed
};

// Returns nothing if the line is not such a message.
std::optional<PairMessage> read_pair_message(std::string_view line);
// Replaces `line`, in which the caller may have reserved LineJetty::line_bytes: then nothing is
// allocated.
void write_pair_message(const PairMessage& message, std::string& line);

}  // namespace urma::engine
