// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/found_peer.h"

namespace urma::umdk {

// An imported Jetty, JFR or group of Jetties.
struct Target : urma_target_jetty_t {
  static constexpr uint64_t kind = 0x7461'7267'6574;

  Target(Context& context, const urma_target_jetty_t& described);
  ~Target();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }

  JettyId id{};  // by which the library knows it
  TokenValue token{};
  FoundPeer peer;
  std::atomic<uint32_t> bound{0};  // the Jetties that are bound to it
};

// Returns by which number the library knows the Jetty, JFR or group.
inline JettyId id_of_target(const urma_target_jetty_t& described) {
  const uint32_t bit = described.type == URMA_JETTY_GROUP ? group_bit : 0;
  return JettyId(described.id.id | bit);
}

// Makes a target of what its owner told. `token` is null if the owner asks for none.
// Errors: those of Device::import.
Result<Target*> import_target(Context& context, const urma_target_jetty_t& described,
                              const urma_token_t* token);

// Ends a target to which no Jetty is bound.
urma_status_t unimport_target(const char* call, urma_target_jetty_t* given);

}  // namespace urma::umdk
