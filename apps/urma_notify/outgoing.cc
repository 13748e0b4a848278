// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/outgoing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace urma::apps::notify {
namespace {

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

Failure unreadable(const std::string& path) {
  return {Exit::error,
          fmt::format("{}: {}. Fix: name a file that can be read", path, std::strerror(errno))};
}

std::shared_ptr<const File> open_file(const std::string& path) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw unreadable(path);
  return std::make_shared<const File>(std::move(file));
}

}  // namespace

Outgoing::Outgoing(const Item& item)
    : path_(item.path), file_(item.stored != nullptr ? item.stored : open_file(path_)) {
  if (fstat(file_->get(), &about_) != 0) throw unreadable(path_);
  if (!S_ISREG(about_.st_mode)) {
    throw Failure(Exit::error, fmt::format("{}: it is no longer a file. Fix: send it again when no "
                                           "process changes it",
                                           path_));
  }
}

uint64_t Outgoing::unallocated() const {
  constexpr uint64_t unit = 512;  // of st_blocks
  const uint64_t stored = static_cast<uint64_t>(about_.st_blocks) * unit;
  return bytes() - std::min(stored, bytes());
}

// File systems that know no holes report data everywhere.
bool Outgoing::is_hole(uint64_t number) const {
  if (unallocated() == 0) return false;
  const auto begin = static_cast<off_t>(number * block_bytes);
  const off_t data = lseek(file_->get(), begin, SEEK_DATA);
  if (data < 0) return errno == ENXIO;  // no data until the end
  return data >= begin + static_cast<off_t>(bytes_of_block(bytes(), number));
}

std::span<const std::byte> Outgoing::read(uint64_t number, std::span<std::byte> to) const {
  const auto block = to.first(bytes_of_block(bytes(), number));
  for (size_t at = 0; at < block.size();) {
    const ssize_t got = pread(file_->get(), block.data() + at, block.size() - at,
                              static_cast<off_t>(number * block_bytes + at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Failure(Exit::error, fmt::format("{}: reading it: {}. Fix: check the disk, and send "
                                             "the file again: the transfer resumes",
                                             path_, std::strerror(errno)));
    }
    if (got == 0) {
      throw Failure(Exit::error, fmt::format("{}: it has become shorter while it was sent; the "
                                             "receiver has not stored this file. Fix: "
                                             "send it again when no process changes it",
                                             path_));
    }
    at += static_cast<size_t>(got);
  }
  return block;
}

void Outgoing::check_unchanged() const {
  struct stat now {};
  if (fstat(file_->get(), &now) == 0 && now.st_size == about_.st_size &&
      same_time(now.st_mtim, about_.st_mtim)) {
    return;
  }
  throw Failure(Exit::error, fmt::format("{}: it has changed while it was sent; the receiver has "
                                         "not stored this file. Fix: send it again when "
                                         "no process changes it",
                                         path_));
}

}  // namespace urma::apps::notify
