// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/not_inherited.h"
#include "drivers/cxl/pages.h"
#include "drivers/cxl/window_errors.h"

namespace urma::drivers::cxl {

// The file or device that a window lies in, opened once by this process: what it is, and its memory
// in the file system. Owns the descriptor, which carries this process's locks. Does not know where
// the file is mapped, nor what is in it. Used by one thread at a time, except for `here` and the
// functions about memory, which any thread may call.
class BackingFile {
 public:
  explicit BackingFile(std::string path);
  BackingFile(const BackingFile&) = delete;
  BackingFile& operator=(const BackingFile&) = delete;
  ~BackingFile();

  // Opens the path, and makes the file if there is none. Called once, before any other function.
  Result<void> open();
  // Opens the path once more, for a mapping. A mapping keeps the open file that it was made from
  // alive, also in a child of fork that outlives this process; the open file of this object would
  // keep the locks. The caller closes the descriptor. Errors: io_error if the path names another
  // file by now; as `open`.
  Result<int> open_again() const;

  const std::string& path() const { return errors_.path; }
  const WindowErrors& errors() const { return errors_; }
  int descriptor() const { return descriptor_; }
  bool is_file() const { return is_file_; }
  const Pages& pages() const { return pages_; }

  // Returns false in a child of the process that opened the file, which has the memory but not the
  // locks, and after `abandon`.
  bool here() const;
  // Leaves the file as if this process had been killed: releases its locks and does nothing else.
  void abandon();

  // Makes the file system allocate memory for this part now, so that a lack of memory is an error
  // here and not a fault later. Returns an errno, or 0. Returns 0 also if memory cannot be
  // allocated in advance (a device), because writing there might overwrite what other processes
  // write.
  int take_memory(uint64_t at, uint64_t bytes) const;
  // Gives whole pages of this part back to the file system: then they read as zeros.
  bool give_back_memory(uint64_t at, uint64_t bytes) const;

 private:
  Result<int> open_path() const;
  bool same_file(int descriptor) const;

  WindowErrors errors_;
  int descriptor_ = -1;
  NotInherited not_inherited_;  // without it, a child would keep the locks
  pid_t owner_;
  bool is_file_ = false;
  Pages pages_;
};

}  // namespace urma::drivers::cxl
