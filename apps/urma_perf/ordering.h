// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::apps::perf {

// An order of works (docs/reliability.md), with its name on the command line.
struct NamedOrder {
  std::string_view name;
  Order order;
  bool chain;
};
inline constexpr std::array<NamedOrder, 4> named_orders = {{
    {"no", Order::none, false},
    {"ro", Order::relaxed, false},
    {"so", Order::strong, false},
    {"chain", Order::relaxed, true},
}};

// A service mode, with its name on the command line.
struct NamedMode {
  std::string_view name;
  ServiceMode mode;
};
inline constexpr std::array<NamedMode, 4> named_modes = {{
    {"auto", ServiceMode::automatic},
    {"roi", ServiceMode::initiator},
    {"rot", ServiceMode::target},
    {"uno", ServiceMode::unreliable},
}};

// Returns the row with this name, or null if there is none.
template <class Named>
constexpr const Named* find_named(std::span<const Named> all, std::string_view name) {
  for (const Named& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

// The order in which the works of a case are executed.
struct Ordering {
  const NamedOrder* order = &named_orders.front();
  const NamedMode* mode = &named_modes.front();
  uint32_t fence_every = 0;  // one work in so many has a fence; 0 means none

  // Messages may be lost.
  bool unreliable() const { return mode->mode == ServiceMode::unreliable; }
};

// An atomic operation, with its name on the command line.
struct NamedAtomic {
  std::string_view name;
  Atomic atomic;
};
inline constexpr std::array<NamedAtomic, 2> named_atomics = {{
    {"fetch-add", Atomic::fetch_add},
    {"cas", Atomic::compare_swap},
}};

}  // namespace urma::apps::perf
