// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/sender.h"

namespace urma::umdk {

// A JFS: a queue of works alone.
struct Jfs : urma_jfs_t {
  static constexpr uint64_t kind = 0x6a66'73;

  Jfs(Context& context, const urma_jfs_cfg_t& cfg);
  ~Jfs();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }
  bool active() const { return urma_jfs_opt.is_actived; }
  Result<void> activate();
  void deactivate();

  std::optional<Sender> sender;
};

// A Jetty: a queue of works, and a JFR that it shares with others.
struct Jetty : urma_jetty_t {
  static constexpr uint64_t kind = 0x6a65'7474'79;

  Jetty(Context& context, const urma_jetty_cfg_t& cfg);
  ~Jetty();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }
  bool active() const { return urma_jetty_opt.is_actived; }
  Result<void> activate();
  void deactivate();

  std::optional<Sender> sender;
};

}  // namespace urma::umdk
