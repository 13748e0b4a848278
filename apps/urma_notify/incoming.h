#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/urma_notify/blocks.h"
#include "apps/urma_notify/messages.h"

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

// Opens the folder where files arrive. Fails if it is not a folder, or may not be written.
File open_folder(const std::string& path);

// A file that is being received into a folder. It has another name until it is complete. The bytes
// of an earlier attempt count only after they were compared. Calls throw a Failure; received bytes
// are kept.
class Incoming {
 public:
  // Fails if the name is invalid or leads out of the folder; throws Busy.
  Incoming(int folder, const std::string& name, uint64_t bytes, bool replace);
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

  // Reads a part of it back. Returns true when all has been read: then `check` is that of the file.
  bool read_back();
  uint32_t check() const { return check_.value(); }
  // Brings the file to the disk and gives it its name.
  void commit();

 private:
  void lock();
  void remove_if_empty();
  void read(int file, uint64_t number, std::span<std::byte> block) const;
  Failure failed(const char* what, int reason) const;

  const int folder_;
  const std::string name_;
  const std::string part_name_;
  const uint64_t bytes_;
  const bool replace_;
  File part_;
  File existing_;
  uint64_t have_ = 0;
  bool whole_ = false;
  bool committed_ = false;
  uint64_t read_back_ = 0;
  FileCheck check_;
};

}  // namespace urma::apps::notify
