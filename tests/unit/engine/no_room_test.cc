// SPDX-License-Identifier: Apache-2.0
#include "engine/no_room.h"

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::engine {
namespace {

using test::mentions;

TEST_CASE("if a peer cannot be reached for lack of room, the error says what is short") {
  // A pseudo file system, which has no room for any file.
  const drivers::PortFacts::Backing backing{
      .path = "/proc/urma-window", .bytes_for_each_peer = 925'696, .cure = "take a larger one"};
  const std::string peer = "the process at 1";

  const Error refused = explain_no_room(peer, {});
  CHECK(refused.status == Status::no_resources);
  CHECK(mentions(refused.message, peer + " has no room for another peer"));
  CHECK(mentions(refused.message, "Limits::peers"));
  CHECK(explain_no_room(peer, {Ways::Shortage::none, &backing}).message == refused.message);

  const Error ways = explain_no_room(peer, {Ways::Shortage::ways, &backing});
  CHECK(ways.status == Status::no_resources);
  CHECK(mentions(ways.message,
                 peer + " cannot be reached over /proc/urma-window: all the connections"));
  CHECK(ways.message.ends_with(". Fix: take a larger one"));

  const Error memory = explain_no_room(peer, {Ways::Shortage::memory, &backing});
  CHECK(memory.status == Status::no_resources);
  CHECK(mentions(memory.message, "the file system /proc (proc"));
  CHECK(mentions(memory.message, "904K are needed. Fix: remove files in /proc"));
}

}  // namespace
}  // namespace urma::engine
