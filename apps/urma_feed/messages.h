// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>
#include <string>

#include "apps/common/message.h"
#include "apps/urma_feed/immediates.h"

namespace urma::apps::feed {

// Producers of payloads and consumers exchange these, beside immediates:
//
//   hello -> an immediate   a producer will send the messages from this number on; the consumer
//                           answers with the number of the message that it wants next
// After that a message is a send with the immediate of its topic and number, and its text is a
// Stamp and the payload. The consumer acknowledges by immediates: the number of the message that it
// wants next, which means that it has written all before that one. When it ends, it says why:
//
//   failed                  the consumer ends, for this reason (apps/common/message.h)
//
// A producer whose buffers are too short for this text never sees it.
inline constexpr int protocol =
    1;  // incremented by every change that old readers do not understand

struct Hello {
  int speaks = protocol;
  std::string version;
  std::string jetty;   // the descriptor to which acknowledgements go
  uint64_t feed = 0;   // drawn by the producer: the same after it has connected again
  uint64_t first = 0;  // the number of the first message that it can still send
  bool lines = false;  // payloads are lines, without their ends
  URMA_BODY(Hello, speaks, version, jetty, feed, first, lines)
};

// When a message was posted, by the clock of the producer's host since its start, and which host
// that is.
struct Stamp {
  uint64_t nanoseconds = 0;
  uint64_t host = 0;
};

// The producer's value in the line of a topic (immediates.h). Other messages may be written there
// while it is read: `again` equals `number` only if the whole value is that of one message.
struct Value {
  uint64_t number = 0;
  Stamp posted{};
  uint64_t again = 0;
};
static_assert(sizeof(Value) <= line_bytes);

inline constexpr uint64_t most_payload_bytes = max_send_bytes - sizeof(Stamp);

// The longest text of a "failed", as JSON.
inline constexpr size_t farewell_bytes = 2048;
inline constexpr size_t most_reason_bytes = 1000;

// Returns a number that differs between hosts, and between boots of one host; 0 if it is unknown.
uint64_t this_host();
Stamp stamp_now();

Wording wording();

}  // namespace urma::apps::feed
