// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace urma::umdk {

// The address space and the threads of this process, as /proc/self describes them. Reading ranges
// allocates no memory, so that a forked child may do it.

// A range of the address space with the same pages behind it: a line of /proc/self/maps.
struct Mapped {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool is_writable = false;
  bool is_plain = false;     // private memory of no file, that may be read and written
  bool is_shared = false;    // stores are seen by other processes
  uint64_t offset = 0;       // in the file, of the first byte
  uint64_t file_system = 0;  // with the number: the file, or 0 if there is none
  uint64_t file_number = 0;

  bool is_same_file(const Mapped& other) const {
    return file_number == other.file_number && file_system == other.file_system;
  }
};

// Reads all ranges, in the order of addresses. Changes that are made meanwhile may be missed.
class MappedRanges {
 public:
  MappedRanges();
  ~MappedRanges();
  MappedRanges(const MappedRanges&) = delete;
  // Returns nothing after the last range, or if /proc cannot be read.
  std::optional<Mapped> next();

 private:
  bool fill();

  int descriptor_;
  size_t used_ = 0;
  size_t filled_ = 0;
  char text_[8192];
};

// Returns the range that contains an address.
std::optional<Mapped> mapped_at(uintptr_t address);
// Returns whether all of the memory is plain, or may be written.
bool is_plain(std::span<std::byte> memory);
bool is_writable(std::span<std::byte> memory);

// Returns whether the process has threads beside the calling one and those of the library, which
// store only into memory that is registered. Returns true if that cannot be found out.
bool has_other_threads();

}  // namespace urma::umdk
