#pragma once

#include <string>

#include "engine/held_file.h"
#include "engine/stats_page.h"

namespace urma::engine {

// A device's page where others find it: in a file that is there, whole, until it is closed or dies.
class StatsFile {
 public:
  StatsFile() = default;
  StatsFile(HeldFile file, StatsPage page) : file_(std::move(file)), page_(std::move(page)) {}

  // One system call, on memory that is there; neither allocates nor locks. What cannot be written
  // is not seen: the page says of when its values are.
  void write(const Statistics& statistics, Time moment, std::span<const uint64_t> more = {});
  // In a child of its process.
  void abandon() { file_.abandon(); }

 private:
  HeldFile file_;
  StatsPage page_;
};

// The pages of this user's devices: a file each, under a lock (HeldFile), in a directory of the
// user's own.
//
// The directory is in /dev/shm, and does not depend on the environment. It must be memory: a store
// to a file on a disk may wait for that disk. It must be the same for a service and for who looks
// at it, though only one of them has an XDG_RUNTIME_DIR, and though /run/user/UID comes and goes
// with logins. And containers that share memory then share it, others have their own.
class StatsFiles {
 public:
  static StatsFiles of_this_user();
  explicit StatsFiles(std::string directory);

  // `unique`: nobody else has that number. Removes what the dead have left.
  Result<StatsFile> publish(const ObservedDevice& facts, uint64_t unique) const;
  Result<Observed> look() const;

 private:
  void look_at(const std::string& name, Observed& out) const;
  void sweep() const;

  OwnDirectory directory_;
};

// This process, as its pages show it.
ObservedDevice this_process();

}  // namespace urma::engine
