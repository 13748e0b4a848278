#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/stats_files.h"

namespace urma::test {

// A directory for the pages of devices, of one test alone.
class PageDirectory {
 public:
  PageDirectory() {
    char text[] = "/dev/shm/urma-pages-XXXXXX";
    path_ = mkdtemp(text);
  }
  PageDirectory(const PageDirectory&) = delete;
  ~PageDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  engine::StatsFiles files() const { return engine::StatsFiles(path_.string()); }
  // Publishes a page of this process, for a device `udp:UNIQUE`.
  engine::StatsFile publish(uint64_t unique) const {
    ObservedDevice facts = engine::this_process();
    facts.device = "udp:" + std::to_string(unique);
    return files().publish(facts, unique).value();
  }
  Observed look() const { return files().look().value(); }
  size_t count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }
  std::filesystem::path only() const { return std::filesystem::directory_iterator(path_)->path(); }

 private:
  std::filesystem::path path_;
};

}  // namespace urma::test
