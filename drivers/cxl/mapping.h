// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "drivers/cxl/backing_file.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/guard.h"
#include "drivers/cxl/shared_words.h"

namespace urma::drivers::cxl {

// A window in this process's memory: maps the file, puts caches between processor and memory where
// the memory is not coherent, and detects when another process truncates the file. It owns the
// file, the mapping and the caches, and reads none of the shared words. Used by one thread at a
// time, except for `words` and `lost`, which any thread may call.
class Mapping {
 public:
  explicit Mapping(std::string path) : file_(std::move(path)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Maps `bytes` of the file, which is open. If `double_seed` is not 0, caches are simulated
  // (ActedCaches).
  Result<void> map(uint64_t bytes, bool coherent, uint64_t double_seed);
  // Makes the caches: from now on, lines are written back to memory and refreshed from it. Called
  // once.
  Result<void> put_caches_between(uint64_t double_seed);
  // Maps this part of the file again at its address, after it was replaced by private pages.
  // Returns false if the path names another file by now.
  bool map_again(std::byte* at, uint64_t bytes);

  BackingFile& file() { return file_; }
  const BackingFile& file() const { return file_; }
  const SharedWords& words() const { return words_; }
  uint64_t bytes() const { return bytes_; }
  // Returns the random number of the window, as it was when it was opened.
  uint64_t id() const { return id_; }
  void set_id(uint64_t id) { id_ = id; }
  // Returns whether another process has truncated the file; then the mapping consists of private
  // pages of zeros.
  bool lost() const { return guard_.lost(); }

 private:
  Error cannot_map(int error) const;
  void work_on(std::byte* base);

  BackingFile file_;
  uint64_t bytes_ = 0;
  uint64_t id_ = 0;
  std::byte* mapped_ = nullptr;
  std::unique_ptr<Caches> caches_;
  SharedWords words_;
  Guard guard_;
};

}  // namespace urma::drivers::cxl
