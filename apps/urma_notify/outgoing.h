// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "apps/urma_notify/items.h"

namespace urma::apps::notify {

// The file that is sent. Fails if it becomes shorter, and reports at the end whether it has
// changed.
class Outgoing {
 public:
  explicit Outgoing(const Item& item);

  Attributes attributes() const { return attributes_of(about_); }
  uint64_t bytes() const { return static_cast<uint64_t>(about_.st_size); }
  // Returns the bytes for which the file system stores nothing.
  uint64_t unallocated() const;
  // Returns whether the whole block lies in a hole: it reads as zeros.
  bool is_hole(uint64_t number) const;
  // Fills `to` with the block and returns that part of it.
  std::span<const std::byte> read(uint64_t number, std::span<std::byte> to) const;
  // Fails if the file has changed since it was opened.
  void check_unchanged() const;

 private:
  const std::string path_;
  const std::shared_ptr<const File> file_;
  struct stat about_ {};
};

}  // namespace urma::apps::notify
