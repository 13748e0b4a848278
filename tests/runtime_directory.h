#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace urma::test {

// A directory for published names, of one test alone: XDG_RUNTIME_DIR names it until this object is
// destroyed.
class RuntimeDirectory {
 public:
  RuntimeDirectory() {
    char text[] = "/tmp/urma-names-XXXXXX";
    path_ = mkdtemp(text);
    if (const char* old = std::getenv("XDG_RUNTIME_DIR")) before_ = old;
    setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
  }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  ~RuntimeDirectory() {
    before_.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    std::filesystem::remove_all(path_);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::string before_;
};

}  // namespace urma::test
