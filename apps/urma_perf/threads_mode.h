#pragma once

#include <array>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::perf {

// The threads that run the devices of both sides.
struct ThreadsMode {
  Threads threads;
  const char* option;
  std::string_view name;  // in results
  bool polls;             // the threads that measure spin, else they sleep in `wait`
  bool alone;             // nothing is placed while the application looks at what came
};

// The first is the default.
inline constexpr std::array threads_modes = {
    ThreadsMode{Threads::inlined, "--inline", "inlined", true, true},
    ThreadsMode{Threads::automatic, "--auto", "automatic", true, false},
    ThreadsMode{Threads::served, "--served", "served", false, false},
};

}  // namespace urma::perf
