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
  bool bound = false;  // a Jetty is bound to it
};

// Makes a target of what its owner told. `token` is null if the owner asks for none.
// Errors: those of Device::import.
Result<Target*> import_target(Context& context, const urma_target_jetty_t& described,
                              const urma_token_t* token);

}  // namespace urma::umdk
