#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "drivers/cxl/backing_file.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/guard.h"
#include "drivers/cxl/shared_words.h"

namespace urma::drivers::cxl {

// A window in this process's memory: maps the file, puts caches between where the memory is not
// coherent, and notices when another process cuts the file off. Owns the file, the mapping and the
// caches. Reads none of the words. For one thread, but for `words` and `lost`.
class Mapping {
 public:
  explicit Mapping(std::string path) : file_(std::move(path)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Maps so many bytes of the file, which is open. `double_seed` not 0: caches are acted
  // (ActedCaches).
  Result<void> map(uint64_t bytes, bool coherent, uint64_t double_seed);
  // From now on, lines are written back to memory and refreshed from it. Called once.
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
  // Returns whether another process has cut off the file: then the mapping is zeros of this
  // process's own.
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
