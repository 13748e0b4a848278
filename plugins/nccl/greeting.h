// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "plugins/nccl/handle.h"
#include "urma/urma.hpp"

namespace urma::nccl {

// The message by which a sender and a receiver introduce themselves: the line of a descriptor with
// the Jetty and the board of its author.
struct Greeting {
  enum class Kind : uint16_t {
    hello = 1,    // from a sender to a listener
    welcome = 2,  // from the receiver that `accept` has made to the sender
    probe = 3,    // from a sender to a listener that has not accepted yet: is it alive?
  };

  uint32_t magic;
  uint16_t version;
  Kind kind;
  char line[max_descriptor_bytes];  // ends at the first 0
};

// Writes a greeting of this kind. A probe has neither Jetty nor board.
Result<Greeting> make_greeting(Greeting::Kind kind, const Jetty* jetty, const Segment* board);
// Returns the peer's Jetty and board. Errors: invalid_argument, version_mismatch, and those of
// Device::import.
Result<Imported> read_greeting(Device& device, const Greeting& greeting, size_t bytes);
// Returns whether the message is a probe.
bool is_probe(const Greeting& greeting, size_t bytes);

}  // namespace urma::nccl
