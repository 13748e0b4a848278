// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/not_inherited.h"
#include "urma/core/result.h"

namespace urma::engine {

// Owns the descriptor of an open file, and closes it. A forked child does not keep it open. Move
// only; used by one thread at a time.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int descriptor);
  OwnedDescriptor(OwnedDescriptor&& other) noexcept;
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept;
  ~OwnedDescriptor();
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  NotInherited not_inherited_;
};

// A file that is valid for as long as the process that made it exists and holds its lock (flock),
// which the system releases when a process ends. A file whose lock is free is stale, and may be
// removed. It does not know what the file contains. Move only; the destructor removes the file.
// Used by one thread at a time.
class HeldFile {
 public:
  HeldFile() = default;
  // `file` must have been locked before other processes could find it.
  HeldFile(OwnedDescriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  HeldFile(HeldFile&& other) noexcept = default;
  HeldFile& operator=(HeldFile&& other) noexcept;
  ~HeldFile();

  int descriptor() const { return file_.get(); }
  // For a forked child, which must not remove the file: closes it without removing it.
  void abandon() { file_ = OwnedDescriptor(); }

 private:
  OwnedDescriptor file_;
  std::string path_;
};

// Opens a file, which may be a held file, for reading; does not follow links. If that fails, the
// result is empty, and errno says why.
OwnedDescriptor open_to_look(const std::string& path);
// Returns whether a process holds the lock of this file.
bool held(const OwnedDescriptor& file);

// A directory for held files, which belongs to this user alone (mode 0700).
struct OwnDirectory {
  std::string path;
  std::string what;  // the kind of files, for errors: "names"
  std::string cure;  // what the user can do if it cannot be trusted, for errors

  // Returns the error of a system call that failed with errno `why`. `doing`: what the call was to
  // do, such as "opening FILE".
  Error failure(const std::string& doing, int why) const;
  // Returns an error unless `path` is a directory of this user with mode 0700, or does not exist.
  Result<void> trust() const;
  // Makes the directory if it is missing, and checks that it can be trusted.
  Result<void> make() const;
};

// Returns the names of the files in a directory, except those that begin with a dot, and at most
// `most`. The result is empty if the directory cannot be read.
std::vector<std::string> entries_of(const std::string& directory);
std::vector<std::string> entries_in(const OwnedDescriptor& directory, size_t most);

}  // namespace urma::engine
