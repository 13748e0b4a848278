// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/urma_notify/blocks.h"
#include "apps/urma_notify/messages.h"
#include "apps/urma_notify/sha256.h"

namespace urma::apps::notify {

// An open file that this object closes.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File();

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// Another sender is sending a file of the same name.
class Busy : public Failure {
 public:
  using Failure::Failure;
};

// The Failure for a file of this name, at the receiver, for which a call of the system failed.
Failure file_failed(const std::string& name, std::string_view what, int reason);

// Opens the folder where files arrive. Fails if it is not a folder, or may not be written.
File open_folder(const std::string& path);

// A file that is being received into a folder, or into one inside it. It has another name until it
// is complete. The bytes of an earlier attempt count only after they were compared. Calls throw a
// Failure; received bytes are kept.
class Incoming {
 public:
  // Fails if the name is invalid or leads out of the folder; throws Busy.
  Incoming(int root, const Offer& offer);
  Incoming(const Incoming&) = delete;
  ~Incoming();

  // Returns the blocks of the earlier attempt, or of the complete file with this name.
  uint64_t have() const { return have_; }
  bool whole() const { return whole_; }
  std::vector<uint32_t> checks(uint64_t first, size_t most) const;

  // Keeps only the blocks before this one. Fails if the disk has too little room for the
  // blocks that are still missing.
  void begin(uint64_t first);
  void put(uint64_t number, std::span<const std::byte> block);
  // The next block is a hole, and so it becomes one in this file.
  void skip(uint64_t number);

  // Reads some of its blocks back, none of them from `before` on, which may not be written yet: of
  // the complete file with this name, if there is one. Returns true when all those have been read.
  bool read_back(uint64_t before);
  // Returns the SHA-256 of what was read back. Called once.
  std::string digest() { return digest_.hex(); }
  // Brings the file to the disk and gives it its attributes and its name.
  void commit();
  // Removes what was received, because it is not what was sent: the next attempt must not resume
  // with it.
  void discard();

 private:
  void lock();
  void remove_if_empty();
  void read(int file, uint64_t number, std::span<std::byte> block) const;
  Failure failed(std::string_view what, int reason) const {
    return file_failed(name_, what, reason);
  }

  const std::string name_;  // with the folders inside the receiver's
  const Attributes attributes_;
  const uint64_t bytes_;
  const uint64_t unallocated_;
  const bool replace_;
  File folder_;
  std::string leaf_;
  std::string part_name_;
  File part_;
  File existing_;
  uint64_t have_ = 0;
  bool whole_ = false;
  bool committed_ = false;
  uint64_t read_back_ = 0;
  Sha256 digest_;
};

}  // namespace urma::apps::notify
