#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/failure.h"

namespace urma::notify {

using apps::Exit;
using apps::Failure;
using apps::must;

// Sender and receiver exchange JSON text in sends: {"id", "type", "body"}. An answer has the id of
// its question.
//
//   question -> answer
//   offer  -> accepted   the sender offers a file
//   checks -> checks     the sender asks for the checks of the receiver's blocks, from a block on
//   begin  -> begun      the sender will write the blocks from this one on
//   finish -> finished   the sender has written all blocks; the whole file has this check
//   same   -> finished   the receiver's file of that name is the same one
//   stop                 the sender ends the transfer
// The receiver may answer any of them with failed {exit, message, again}, and may send that with
// id 0 without a question.
inline constexpr int protocol =
    1;  // incremented by every change that old readers do not understand
inline constexpr size_t most_message_bytes = 32 * 1024;
inline constexpr size_t checks_at_a_time = 1024;

std::string library_version();

struct Message {
  uint64_t id = 0;
  std::string type;
  nlohmann::json body;
};
// Throws a Failure if the text is not UTF-8, or too long.
std::string to_text(const Message& message);
// Throws a Failure if the text is not a message.
Message parse_message(const std::string& text);

struct Offer {
  int speaks = protocol;
  std::string version;
  std::string jetty;  // the descriptor to which answers go
  std::string name;
  uint64_t bytes = 0;
  bool replace = false;
};
struct Accepted {
  uint32_t transfer = 0;
  uint64_t have = 0;    // blocks that can be compared
  bool whole = false;   // the blocks are a complete file with its name
  std::string staging;  // a descriptor
};
struct Ask {
  uint32_t transfer = 0;
  uint64_t block = 0;
};
struct Checks {
  std::vector<uint32_t> checks;
};
struct Finish {
  uint32_t transfer = 0;
  uint32_t check = 0;
};
struct Failed {
  Exit exit = Exit::error;
  std::string message;
  bool again = false;  // a repetition soon may succeed
};

// Like all conversions of nlohmann, `from_json` fails by throwing nlohmann::json::exception.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Offer, speaks, version, jetty, name, bytes, replace)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Accepted, transfer, have, whole, staging)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ask, transfer, block)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Checks, checks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finish, transfer, check)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Failed, exit, message, again)

}  // namespace urma::notify
