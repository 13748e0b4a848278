// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/temporary_directory.h"

namespace urma::test {

// A directory for published names, of one test alone: XDG_RUNTIME_DIR names it until this object is
// destroyed.
class RuntimeDirectory {
 public:
  RuntimeDirectory() {
    if (const char* old = std::getenv("XDG_RUNTIME_DIR")) before_ = old;
    setenv("XDG_RUNTIME_DIR", path().c_str(), 1);
  }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  ~RuntimeDirectory() {
    before_.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
  }
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  const TemporaryDirectory directory_{"/tmp/urma-names-XXXXXX"};
  std::string before_;
};

}  // namespace urma::test
