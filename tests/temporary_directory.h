// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace urma::test {

// An empty directory of one test alone, which is removed with all that is in it.
class TemporaryDirectory {
 public:
  // `pattern` ends with XXXXXX.
  explicit TemporaryDirectory(std::string pattern) : path_(mkdtemp(pattern.data())) {}
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

}  // namespace urma::test
