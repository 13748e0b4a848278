#pragma once

#include <string>
#include <vector>

#include "base/not_inherited.h"
#include "urma/core/result.h"

namespace urma::engine {

// An open file, which a child of fork does not keep open. Move only.
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

// A file that says something for as long as its maker lives: under a lock (flock), which the system
// takes from the dead. One whose lock is free belongs to nobody any more.
class HeldFile {
 public:
  HeldFile() = default;
  // Locked by its maker before others could find it.
  HeldFile(OwnedDescriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  HeldFile(HeldFile&& other) noexcept = default;
  HeldFile& operator=(HeldFile&& other) noexcept;
  ~HeldFile();

  int descriptor() const { return file_.get(); }
  // In a child of the maker: the file is not ours to remove.
  void abandon() { file_ = OwnedDescriptor(); }

 private:
  OwnedDescriptor file_;
  std::string path_;
};

// Opens to read what may be a held file, and follows no link. An empty one: errno.
OwnedDescriptor open_to_look(const std::string& path);
// Whether somebody who lives holds the open file.
bool held(const OwnedDescriptor& file);

// Where held files lie: a directory that is this user's alone (mode 0700).
struct OwnDirectory {
  std::string path;
  std::string what;  // lies there, for errors
  std::string cure;  // when it cannot be trusted

  Error failure(const std::string& doing, int why) const;
  // Where there is none, there is nothing to distrust.
  Result<void> trust() const;
  // Makes it, if it is not there.
  Result<void> make() const;
};

// What lies in a directory, but for what begins with a dot; nothing if it cannot be looked at.
std::vector<std::string> entries_of(const std::string& directory);

}  // namespace urma::engine
