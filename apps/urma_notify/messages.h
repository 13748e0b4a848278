// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/message.h"
#include "apps/urma_notify/attributes.h"

namespace urma::apps::notify {

// The messages of sender and receiver:
//
//   question -> answer
//   offer  -> accepted   the sender offers a file
//   checks -> checks     the sender asks for the checks of the receiver's blocks, from a block on
//   begin  -> begun      the sender will write the blocks from this one on
//   finish -> finished   the sender has written all blocks, or the receiver's file of that name has
//                        the same ones; the whole file has this digest
//   folder -> made       the sender has sent everything in a folder
//   stop                 the sender ends the transfer
// The receiver may answer any of them with failed (apps/common/message.h), and may send that with
// id 0 without a question.
inline constexpr int protocol =
    2;  // incremented by every change that old readers do not understand
inline constexpr size_t checks_at_a_time = 1024;

Wording wording();

// The bodies of these messages. `Ask` is that of "checks" and of "begin".
struct Offer {
  int speaks = protocol;
  std::string version;
  std::string jetty;  // the descriptor to which answers go
  std::string name;
  uint64_t bytes = 0;
  bool replace = false;
  Attributes attributes{};
  uint64_t unallocated = 0;  // bytes in holes, for which the receiver needs no room
};
// Older senders do not send `unallocated`.
void to_json(nlohmann::json& out, const Offer& in);
void from_json(const nlohmann::json& in, Offer& out);
struct Folder {
  int speaks = protocol;
  std::string version;
  std::string jetty;
  std::string name;
  Attributes attributes{};
  uint64_t missing = 0;  // entries in it that are not at the receiver, at any depth
};
// Older senders do not send `missing`.
void to_json(nlohmann::json& out, const Folder& in);
void from_json(const nlohmann::json& in, Folder& out);
// Returns the line that both sides print for a folder after everything in it was tried.
std::string text_of(const Folder& folder);
struct Accepted {
  uint32_t transfer = 0;
  uint64_t have = 0;    // blocks that can be compared
  bool whole = false;   // the blocks are a complete file with its name
  std::string staging;  // a descriptor
  bool holes = false;   // the receiver understands blocks that are holes (blocks.h)
};
// Older receivers do not send `holes`.
void to_json(nlohmann::json& out, const Accepted& in);
void from_json(const nlohmann::json& in, Accepted& out);
struct Ask {
  uint32_t transfer = 0;
  uint64_t block = 0;
  URMA_BODY(Ask, transfer, block)
};
struct Checks {
  std::vector<uint32_t> checks;
  URMA_BODY(Checks, checks)
};
struct Finish {
  uint32_t transfer = 0;
  uint64_t block = 0;  // 0
  std::string sha256;  // of the bytes of the whole file, 64 digits
  URMA_BODY(Finish, transfer, block, sha256)
};

}  // namespace urma::apps::notify
