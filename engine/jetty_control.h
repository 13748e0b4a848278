// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "engine/jetty_ids.h"
#include "jetty/transactions.h"

namespace urma::engine {

// Creates, flushes, resets and destroys Jetties for control calls. It neither posts nor completes
// works: it asks the initiator and the target to end them. The Jetties belong to
// `jetty::Transactions`. `Engine` owns it; only the thread that runs the engine calls it.
//
// Functions that return bool return false until they are done, and are then called again in later
// passes.
class JettyControl {
 public:
  // `limit`: how many Jetties the application may have. The other parts outlive this object.
  JettyControl(uint32_t limit, jetty::Transactions& transactions, Entropy& entropy,
               const JettyIdShare& share = {})
      : transactions_(transactions), entropy_(entropy), ids_(limit, entropy, share) {}

  struct Made {
    JettyId id{};
    TokenValue token{};
    Handle handle;
  };
  // The parts of a new Jetty that the application has chosen.
  struct Chosen {
    std::optional<JettyId> id;  // from first_user_jetty on, and not in use
    std::optional<TokenValue> token;
  };
  // Returns nothing if the limit is reached.
  std::optional<Made> create(jetty::JettyParts parts, const Chosen& chosen = {});
  // As `create`, for a Jetty group. `entry`: the new group, under any number. The id that it
  // returns has `group_bit`.
  std::optional<Made> create_group(jetty::JettyParts parts, const Chosen& chosen,
                                   jetty::Groups::Map::node_type entry);
  enum class Changed : uint8_t { yes, full, already, absent };
  // Adds the Jetty to the group's members, as the last one, or removes it.
  Changed add(const Made& group, Handle jetty);
  Changed remove(const Made& group, Handle jetty);
  // Ends all works and receives of this Jetty.
  bool flush(uint32_t index, Time now);
  bool flush_all(Time now);
  // Ends all works of this Jetty, and lets none begin until `reset`. Its messages still arrive.
  bool suspend(uint32_t index, Time now);
  // Lets a Jetty in the error state, or a suspended one, work again. Works that were posted, or
  // held, before this call are flushed.
  void reset(uint32_t index, Time now);
  bool destroy(uint32_t index, Time now);

 private:
  // Returns an id that no Jetty has, or nothing if there is none.
  std::optional<JettyId> draw();
  // Takes all works that were posted to this Jetty.
  void take_posted(jetty::Jetty& jetty, Time now);

  jetty::Transactions& transactions_;
  Entropy& entropy_;
  JettyIds ids_;
};

}  // namespace urma::engine
