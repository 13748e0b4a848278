// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/registrations.h"

#include <algorithm>

namespace urma::nccl {

Result<Registration*> Registrations::add(Device& device, void* data, size_t bytes) {
  const std::lock_guard held(mutex_);
  auto& place = all_[{data, bytes}];
  if (place == nullptr) {
    const std::span memory(static_cast<std::byte*>(data), bytes);
    auto segment = device.register_memory(memory, Rights::write);
    if (!segment) {
      all_.erase({data, bytes});
      return segment.error();
    }
    if (unused_.empty()) unused_.push_back(std::make_unique<Registration>());
    place = std::move(unused_.back());
    unused_.pop_back();
    place->segment = std::move(*segment);
    place->data = memory.data();
    place->bytes = bytes;
  }
  ++place->users;
  return place.get();
}

Result<void> Registrations::remove(Registration* registration) {
  std::optional<Segment> last;
  {
    const std::lock_guard held(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& each) {
      return each.second.get() == registration;
    });
    if (found == all_.end()) {
      return Error{Status::invalid_argument,
                   "this memory is not registered. Fix: deregister each handle once, before the "
                   "communicator is finalized"};
    }
    if (--found->second->users > 0) return {};
    last = std::exchange(registration->segment, std::nullopt);
    registration->generation.fetch_add(1, std::memory_order_release);
    unused_.push_back(std::move(found->second));
    all_.erase(found);
  }
  return last->unregister();
}

}  // namespace urma::nccl
