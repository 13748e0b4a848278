// SPDX-License-Identifier: Apache-2.0
#include "drivers/accelerator_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "base/above_standard.h"

namespace urma::drivers {

AcceleratorBoard::Content* AcceleratorBoard::map(int descriptor) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<Content*>(mapped);
}

std::optional<AcceleratorBoard> AcceleratorBoard::make(const std::array<uint64_t, 2>& random) {
  const int descriptor = above_standard(memfd_create("urma-gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (descriptor < 0) return std::nullopt;
  // With a fixed size, no process can make another one fault.
  const bool sized = ftruncate(descriptor, bytes) == 0 &&
                     fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  Content* const content = sized ? map(descriptor) : nullptr;
  if (content == nullptr) {
    close(descriptor);
    return std::nullopt;
  }
  content->version = version;
  content->random = random;
  return AcceleratorBoard(descriptor, content,
                          {.process = static_cast<uint32_t>(getpid()),
                           .descriptor = static_cast<uint32_t>(descriptor),
                           .random = random});
}

std::optional<AcceleratorBoard> AcceleratorBoard::open(const Name& name) {
  std::array<char, 48> path;
  std::snprintf(path.data(), path.size(), "/proc/%u/fd/%u", name.process, name.descriptor);
  // The name comes from a peer: only a file is opened, because opening others can have effects.
  struct stat named {};
  if (stat(path.data(), &named) != 0 || !S_ISREG(named.st_mode)) return std::nullopt;
  const int descriptor =
      above_standard(::open(path.data(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (descriptor < 0) return std::nullopt;
  struct stat about {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  const bool fits = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(descriptor, &about) == 0 &&
                    about.st_size == static_cast<off_t>(bytes);
  Content* const content = fits ? map(descriptor) : nullptr;
  if (content == nullptr) {
    close(descriptor);
    return std::nullopt;
  }
  AcceleratorBoard board(descriptor, content, name);
  if (content->version != version || content->random != name.random) return std::nullopt;
  return board;
}

AcceleratorBoard::AcceleratorBoard(AcceleratorBoard&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      content_(std::exchange(other.content_, nullptr)),
      name_(other.name_) {}

AcceleratorBoard& AcceleratorBoard::operator=(AcceleratorBoard&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(content_, other.content_);
  std::swap(name_, other.name_);
  return *this;
}

AcceleratorBoard::~AcceleratorBoard() {
  if (content_ != nullptr) munmap(content_, bytes);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace urma::drivers
