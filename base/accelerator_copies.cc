// SPDX-License-Identifier: Apache-2.0
#include "base/accelerator_copies.h"

#include <cstring>
#include <utility>

#include "base/accelerator_memory.h"

namespace urma {

AcceleratorCopies::~AcceleratorCopies() {
  unpin();
  unpin(pinned_landing_);
  for (const Way& way : ways_) {
    if (const InCudaContext inside(way.context.get()); inside) {
      inside->cuStreamDestroy(way.stream);
    }
  }
}

bool AcceleratorCopies::open(int number) {
  Way& way = ways_[static_cast<size_t>(number)];
  if (way.stream != nullptr) return true;
  if (landing_.data() == nullptr) landing_ = Region::try_make(landing_bytes, page_bytes);
  if (landing_.data() == nullptr) return false;
  sent_.reserve(most_sent);
  lost_.reserve(most_lost);
  Way made{.context = CudaContext(number)};
  {
    const InCudaContext inside(made.context.get());
    const bool ready =
        inside && inside->cuStreamCreate(&made.stream, Cuda::stream_non_blocking) == 0;
    if (!ready) return false;
  }
  way = std::move(made);
  if (pinned_landing_.context == nullptr) {
    pinned_landing_ = pin_in(way.context.get(), {landing_.data(), landing_bytes});
  }
  return true;
}

AcceleratorCopies::Pinned AcceleratorCopies::pin_in(CUcontext context,
                                                    std::span<std::byte> memory) {
  const InCudaContext inside(context);
  const bool done = inside && inside->cuMemHostRegister(memory.data(), memory.size(),
                                                        Cuda::host_register_portable) == 0;
  return done ? Pinned{memory, context} : Pinned{};
}

void AcceleratorCopies::unpin(Pinned& pinned) {
  if (const InCudaContext inside(pinned.context); inside) {
    inside->cuMemHostUnregister(pinned.memory.data());
  }
  pinned = {};
}

void AcceleratorCopies::pin(std::span<std::byte> memory) {
  for (const Way& way : ways_) {
    if (pinned_.context == nullptr) pinned_ = pin_in(way.context.get(), memory);
  }
}

bool AcceleratorCopies::begin(std::byte* to, const std::byte* from, size_t bytes, uint64_t owner) {
  if (landing_.data() == nullptr) return false;
  if (used_ + bytes > landing_bytes || sent_.size() == most_sent) settle();
  const bool follows =
      waiting_.bytes > 0 && to == waiting_.to + waiting_.bytes && owner == waiting_.owner;
  if (!follows) {
    send_waiting();
    waiting_ = {.to = to, .from = used_, .bytes = 0, .owner = owner};
  }
  std::memcpy(landing_.data() + used_, from, bytes);
  waiting_.bytes += bytes;
  used_ += bytes;
  if (waiting_.bytes >= most_bytes) send_waiting();
  return lost_.empty() || !take_lost(owner);
}

// Gives the waiting data to the driver.
void AcceleratorCopies::send_waiting() {
  const Waiting waiting = std::exchange(waiting_, {});
  if (waiting.bytes == 0) return;
  const int number = AcceleratorMemory::number_of(waiting.to);
  const Way* const way = number >= 0 ? &ways_[static_cast<size_t>(number)] : nullptr;
  const InCudaContext inside(way == nullptr || way->failed ? nullptr : way->context.get());
  const auto to = reinterpret_cast<CUdeviceptr>(waiting.to);
  const std::byte* const from = landing_.data() + waiting.from;
  if (inside && inside->cuMemcpyHtoDAsync(to, from, waiting.bytes, way->stream) == 0) {
    sent_.push_back({.number = number, .owner = waiting.owner});
  } else {
    lose(waiting.owner);
  }
}

bool AcceleratorCopies::copy(std::byte* to, const std::byte* from, size_t bytes) {
  const int number = AcceleratorMemory::number_of(from);
  if (number < 0) return false;
  const Way& way = ways_[static_cast<size_t>(number)];
  const InCudaContext inside(way.failed ? nullptr : way.context.get());
  if (!inside) return false;
  const auto there = reinterpret_cast<CUdeviceptr>(from);
  return inside->cuMemcpyDtoHAsync(to, there, bytes, way.stream) == 0 &&
         inside->cuStreamSynchronize(way.stream) == 0;
}

void AcceleratorCopies::settle_begun() {
  send_waiting();
  used_ = 0;
  uint32_t waited_for = 0;  // the accelerators, a bit each
  static_assert(Cuda::most_devices <= 32);
  for (const Sent& one : sent_) {
    Way& way = ways_[static_cast<size_t>(one.number)];
    if (((waited_for >> one.number) & 1u) == 0) {
      waited_for |= 1u << one.number;
      const InCudaContext inside(way.context.get());
      way.failed = way.failed || !inside || inside->cuStreamSynchronize(way.stream) != 0;
    }
    if (way.failed) lose(one.owner);
  }
  sent_.clear();
}

bool AcceleratorCopies::finish(uint64_t owner) {
  settle();
  return lost_.empty() || !take_lost(owner);
}

// Owners that never ask are forgotten at last: their slices have ended otherwise.
void AcceleratorCopies::lose(uint64_t owner) {
  if (!lost_.empty() && lost_.back() == owner) return;
  if (lost_.size() == most_lost) lost_.erase(lost_.begin());
  lost_.push_back(owner);
}

bool AcceleratorCopies::take_lost(uint64_t owner) { return std::erase(lost_, owner) > 0; }

}  // namespace urma
