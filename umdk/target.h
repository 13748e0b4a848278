// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/context.h"

namespace urma::umdk {

// An imported Jetty or JFR.
struct Target : urma_target_jetty_t {
  static constexpr uint64_t kind = 0x7461'7267'6574;

  Target(Context& context, const urma_target_jetty_t& described);
  ~Target();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }

  RemoteJetty remote;
  std::atomic<uint32_t> bound{0};  // the Jetties that are bound to it
};

// Makes a target of what its owner told. `token` is null if the owner asks for none.
// Errors: those of Device::import.
Result<Target*> import_target(Context& context, const urma_target_jetty_t& described,
                              const urma_token_t* token);

// Ends a target to which no Jetty is bound.
urma_status_t unimport_target(const char* call, urma_target_jetty_t* given);

}  // namespace urma::umdk
