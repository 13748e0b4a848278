// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/stats_files.h"
#include "tests/temporary_directory.h"

namespace urma::test {

// A directory for the pages of devices, of one test alone.
class PageDirectory {
 public:
  const std::filesystem::path& path() const { return directory_.path(); }
  engine::StatsFiles files() const { return engine::StatsFiles(path().string()); }
  // Publishes a page of this process, for a device `udp:UNIQUE`.
  engine::StatsFile publish(uint64_t unique) const {
    ObservedDevice facts = engine::this_process();
    facts.device = "udp:" + std::to_string(unique);
    return files().publish(facts, unique).value();
  }
  Observed look() const { return files().look().value(); }
  size_t count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path()), {}));
  }
  std::filesystem::path only() const { return std::filesystem::directory_iterator(path())->path(); }

 private:
  const TemporaryDirectory directory_{"/dev/shm/urma-pages-XXXXXX"};
};

}  // namespace urma::test
