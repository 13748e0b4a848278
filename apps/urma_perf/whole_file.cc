// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/common/output.h"

namespace urma::apps::perf {

WholeFile::WholeFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  struct stat found {};
  const bool special = stat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
  if (special) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporary_ = fmt::format("{}.{}.part", path_, getpid());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    throw failure("cannot be written");
  }
}

WholeFile::~WholeFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Failure WholeFile::failure(const char* doing) const {
  const std::string what =
      fmt::format("{} {}: {}: {}", option_, path_, doing, std::strerror(errno));
  if (errno == ENOSPC || errno == EDQUOT) {
    return {Exit::error, what + ". Fix: free some space there, or name a file on another disk"};
  }
  return {Exit::error,
          what + ". Fix: name a file in a directory that exists and that you may write to"};
}

void WholeFile::write(std::string_view text) {
  if (!write_all(descriptor_, text)) throw failure("writing it");
  if (temporary_.empty()) return;
  // An error of a full disk appears here at the latest, and not after the rename.
  if (fsync(descriptor_) != 0) throw failure("writing it");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) throw failure("renaming it");
  temporary_.clear();
}

}  // namespace urma::apps::perf
