// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/held_file.h"
#include "engine/stats_page.h"

namespace urma::engine {

// A file with the page of a device, which other processes can read until the device is closed or
// its process ends. It does not know when values change: `Reporter`, which owns it, writes them.
// Used by the thread that runs the passes.
class StatsFile {
 public:
  StatsFile() = default;
  StatsFile(HeldFile file, StatsPage page) : file_(std::move(file)), page_(std::move(page)) {}

  // Writes the values by one system call; neither allocates nor locks. Errors are ignored: the page
  // says when its values were written.
  void write(const Statistics& statistics, Time moment, std::span<const uint64_t> more = {});
  // The same for the channels; `more`: those without a row.
  void write_channels(std::span<const transport::ChannelView> rows, uint32_t more);
  // The same for the objects, if they are not those that were written last.
  void write_objects(const ObjectViews& objects);
  // For a forked child: closes the file without removing it.
  void abandon() { file_.abandon(); }

 private:
  void write(const StatsPage::Write& next);

  HeldFile file_;
  StatsPage page_;
  ObjectViews written_;
};

// The pages of this user's devices: one locked file for each (HeldFile), in a directory of the
// user.
//
// The directory is in /dev/shm, and does not depend on the environment. It must be memory, because
// writing a file on a disk may block. It must be the same for a service and for the process that
// observes it, although only one of them may have an XDG_RUNTIME_DIR, and /run/user/UID exists only
// during logins. Containers that share /dev/shm share it; others have their own.
class StatsFiles {
 public:
  static StatsFiles of_this_user();
  explicit StatsFiles(std::string directory);

  // Makes the file of a device, and removes stale files. `unique`: a number that no other device
  // has. Errors: permission_denied, io_error.
  Result<StatsFile> publish(const ObservedDevice& facts, uint64_t unique) const;
  // Reads all pages. Errors: permission_denied, io_error.
  Result<Observed> look() const;

 private:
  void sweep() const;

  OwnDirectory directory_;
};

// Reads the page in this open file, and adds what it finds to `out`: a device, or that the page
// cannot be read. `path`: where the file is, for errors. Returns false if the file is stale.
// `owner`: the user to which the file must belong, of which no other program could write the page.
bool add_page(const OwnedDescriptor& file, const std::string& path, uint32_t owner, Observed& out);

// Sorts by process, then by age, the oldest first.
void sort_devices(Observed& seen);

// Returns the facts about this process that its pages show.
ObservedDevice this_process();

}  // namespace urma::engine
