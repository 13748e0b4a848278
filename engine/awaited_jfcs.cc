// SPDX-License-Identifier: Apache-2.0
#include "engine/awaited_jfcs.h"

namespace urma::engine {

void AwaitedJfcs::add(const std::shared_ptr<jetty::Jfc>& jfc) {
  std::erase_if(jfcs_, [](const auto& one) { return one.expired(); });
  jfcs_.emplace_back(jfc);
}

bool AwaitedJfcs::give_descriptor(const std::shared_ptr<jetty::Jfc>& jfc) {
  const std::lock_guard lock(mutex_);
  add(jfc);
  if (jfc->make_descriptor()) return true;
  jfcs_.pop_back();
  return false;
}

void AwaitedJfcs::attach(const std::shared_ptr<jetty::Jfc>& jfc,
                         const std::shared_ptr<jetty::Jfce>& events, uint64_t tag) {
  const std::lock_guard lock(mutex_);
  add(jfc);
  jfc->attach(events, tag);
}

void AwaitedJfcs::ring() {
  const std::lock_guard lock(mutex_);
  for (const auto& one : jfcs_) {
    if (const auto jfc = one.lock()) jfc->ring();
  }
}

}  // namespace urma::engine
