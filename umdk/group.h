// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "umdk/context.h"

namespace urma::umdk {

struct Jetty;

// A group of Jetties. Its fields `jetty_list` and `jetty_cnt` show the members, under `list_mutex`.
struct Group : urma_jetty_grp_t {
  static constexpr uint64_t kind = 0x6772'6f75'70;

  Group(Context& context, const urma_jetty_grp_cfg_t& cfg, JettyGroup made);
  ~Group();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }

  // Makes an active Jetty a member, and ends that. Errors: those of JettyGroup::add.
  Result<void> add(Jetty& jetty);
  void remove(Jetty& jetty);
  // Returns how many members there are.
  uint32_t count();

 private:
  std::optional<JettyGroup> group_;  // until the destructor
  std::array<urma_jetty_t*, max_group_members> list_{};
};

}  // namespace urma::umdk
