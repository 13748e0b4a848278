#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/message.h"

namespace urma::apps::notify {

// The messages of sender and receiver:
//
//   question -> answer
//   offer  -> accepted   the sender offers a file
//   checks -> checks     the sender asks for the checks of the receiver's blocks, from a block on
//   begin  -> begun      the sender will write the blocks from this one on
//   finish -> finished   the sender has written all blocks; the whole file has this check
//   same   -> finished   the receiver's file of that name is the same one
//   stop                 the sender ends the transfer
// The receiver may answer any of them with failed (apps/common/message.h), and may send that with
// id 0 without a question.
inline constexpr int protocol =
    1;  // incremented by every change that old readers do not understand
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
  URMA_BODY(Offer, speaks, version, jetty, name, bytes, replace)
};
struct Accepted {
  uint32_t transfer = 0;
  uint64_t have = 0;    // blocks that can be compared
  bool whole = false;   // the blocks are a complete file with its name
  std::string staging;  // a descriptor
  URMA_BODY(Accepted, transfer, have, whole, staging)
};
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
  uint32_t check = 0;
  URMA_BODY(Finish, transfer, block, check)
};

}  // namespace urma::apps::notify
