// SPDX-License-Identifier: Apache-2.0
#include "engine/engines.h"

#include <array>
#include <exception>
#include <thread>

#include "base/signals_blocked.h"

namespace urma::engine {

Engines::Engines(std::vector<std::unique_ptr<Runner>> runners, const Limits& limits)
    : runners_(std::move(runners)), peers_(runners_, limits) {
  for (uint32_t i = 0; i < count(); ++i) {
    at(i).membership().engines = this;
    at(i).membership().number = i;
  }
  if (count() > 1) peers_.add_self(further_places());
}

std::vector<Endpoint> Engines::further_places() const {
  std::vector<Endpoint> places;
  for (uint32_t i = 1; i < count(); ++i) places.push_back(at(i).port_facts().self);
  return places;
}

void Engines::close() {
  for (const auto& runner : runners_) runner->refuse_works();
  std::array<std::thread, most_engines> others;
  {
    const SignalsBlocked blocked;
    for (uint32_t i = 1; i < count(); ++i) {
      try {
        others[i] = std::thread([&runner = at(i)] { runner.close(); });
      } catch (const std::exception&) {
        at(i).close();  // the system makes no thread, so this one closes it
      }
    }
  }
  at(0).close();
  for (std::thread& other : others) {
    if (other.joinable()) other.join();
  }
}

}  // namespace urma::engine
