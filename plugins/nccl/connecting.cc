// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/connecting.h"

#include <map>
#include <mutex>

namespace urma::nccl {
namespace {

using Senders = std::map<uint64_t, std::unique_ptr<Sender>>;

// These have no destructors, which could run after the plugin was unloaded.
std::mutex mutex;
Senders* all = nullptr;
uint64_t last = 0;

// The senders are destroyed without the mutex, because that may take a while.
std::unique_ptr<Senders> take_all() {
  const std::lock_guard held(mutex);
  return std::unique_ptr<Senders>(std::exchange(all, nullptr));
}

}  // namespace

uint64_t keep(std::unique_ptr<Sender> sender) {
  const std::lock_guard held(mutex);
  if (all == nullptr) all = new Senders;
  all->emplace(++last, std::move(sender));
  return last;
}

std::unique_ptr<Sender> resume(uint64_t number) {
  const std::lock_guard held(mutex);
  if (all == nullptr) return nullptr;
  auto found = all->extract(number);
  if (all->empty()) delete std::exchange(all, nullptr);
  return found.empty() ? nullptr : std::move(found.mapped());
}

void drop_all() { take_all(); }

}  // namespace urma::nccl
