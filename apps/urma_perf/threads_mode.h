// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::apps::perf {

// The threads that run the devices of both sides.
struct ThreadsMode {
  Threads threads;
  const char* option;
  std::string_view name;  // the name in results
  bool polls;             // the measuring threads spin; otherwise they sleep in `wait`
  bool alone;             // no engine stores data while the application checks what came
};

// The first mode is the default.
inline constexpr std::array threads_modes = {
    ThreadsMode{Threads::inlined, "--inline", "inlined", true, true},
    ThreadsMode{Threads::automatic, "--auto", "automatic", true, false},
    ThreadsMode{Threads::served, "--served", "served", false, false},
};

}  // namespace urma::apps::perf
