// SPDX-License-Identifier: Apache-2.0
#include "drivers/pcap/capture_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/above_standard.h"

namespace urma::drivers::pcap {
namespace {

Error because(Status status, const std::string& path, const std::string& why,
              const std::string& fix) {
  return {status, "pcap: " + path + " " + why + ". Fix: " + fix};
}

Error cannot_open(const std::string& path, int why) {
  const bool denied = why == EACCES || why == EPERM || why == EROFS;
  return because(denied ? Status::permission_denied : Status::io_error, path,
                 std::string("cannot be opened: ") + std::strerror(why),
                 "name a file in a directory where this user may write: pcap(file=/tmp/x.pcapng)");
}

// Returns the limit of file sizes. A process that writes beyond it is killed (SIGXFSZ).
uint64_t most_bytes_of_a_file() {
  rlimit most{};
  const bool known = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY;
  return known ? most.rlim_cur : UINT64_MAX;
}

// Returns how many bytes were written; if fewer than `bytes`, errno says why.
size_t write_all(int file, const std::byte* data, size_t bytes, uint64_t offset) {
  const uint64_t most = most_bytes_of_a_file();
  const size_t allowed = most > offset ? std::min<uint64_t>(bytes, most - offset) : 0;
  size_t done = 0;
  errno = EFBIG;
  while (done < allowed) {
    const ssize_t written =
        pwrite(file, data + done, allowed - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
    errno = EFBIG;
  }
  return done;
}

bool is_capture(int file) {
  constexpr std::array begins{std::byte{0x0a}, std::byte{0x0d}, std::byte{0x0d}, std::byte{0x0a}};
  std::array<std::byte, begins.size()> found{};
  return pread(file, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) &&
         found == begins;
}

}  // namespace

// Truncates the file only once it is known to be a capture that no other device is writing. Opening
// never blocks.
Result<std::unique_ptr<CaptureFile>> CaptureFile::open(const CaptureSettings& settings,
                                                       std::string_view name,
                                                       std::string_view description) {
  const std::string& path = settings.path;
  const int descriptor = above_standard(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  const int why = errno;
  struct stat about {};
  const bool known =
      descriptor >= 0 ? fstat(descriptor, &about) == 0 : stat(path.c_str(), &about) == 0;
  const bool file = S_ISREG(about.st_mode);
  if (known && !file && !S_ISCHR(about.st_mode)) {
    if (descriptor >= 0) close(descriptor);
    return because(Status::invalid_argument, path,
                   "is not a regular file, and writing to it might block the device",
                   "name a file; \"tail -c +1 -f FILE | wireshark -k -i -\" shows it as it grows");
  }
  if (descriptor < 0) return cannot_open(path, why);
  auto capture = std::unique_ptr<CaptureFile>(new CaptureFile(settings, descriptor));
  // A file system without locks gives another error, and the file is used.
  if (file && flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    capture->abandon();
    return because(Status::invalid_argument, path, "is being written by another device",
                   "give each device a file of its own");
  }
  // Overwrites only captures, so that a mistyped name does not destroy another file.
  if (file && about.st_size > 0 && !is_capture(descriptor)) {
    capture->abandon();
    return because(Status::invalid_argument, path, "exists and is not a capture",
                   "name another file, or remove that one");
  }
  // The file will contain tokens. This fails if another user owns the file, which is accepted.
  if (file) [[maybe_unused]]
    const int mine = fchmod(descriptor, 0600);
  if (auto done = capture->write_beginning(name, description); !done) {
    capture->abandon();
    return done.error();
  }
  return capture;
}

CaptureFile::CaptureFile(const CaptureSettings& settings, int descriptor)
    : settings_(settings), descriptor_(descriptor), not_inherited_(descriptor) {
  why_stopped_.reserve(64);
}

Result<void> CaptureFile::write_beginning(std::string_view name, std::string_view description) {
  [[maybe_unused]] const int emptied = ftruncate(descriptor_, 0);
  static_assert(most_beginning_bytes <= much_bytes);
  const size_t bytes = put_beginning(
      memory_.data(), {name, description, static_cast<uint32_t>(settings_.snap_bytes)});
  const size_t written = write_all(descriptor_, memory_.data(), bytes, 0);
  const int why = errno;
  offset_ = bytes;
  if (written == bytes) return {};
  [[maybe_unused]] const int as_before = ftruncate(descriptor_, 0);
  return because(Status::no_resources, settings_.path,
                 std::string("cannot be written: ") + std::strerror(why),
                 "make room (df), or name a file elsewhere");
}

CaptureFile::~CaptureFile() {
  flush();
  write_statistics();
  if (descriptor_ < 0) return;
  not_inherited_ = NotInherited();
  close(descriptor_);
}

void CaptureFile::abandon() {
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  gathered_ = 0;
  due_ = never;
  why_stopped_ = "abandoned";
}

std::byte* CaptureFile::begin(size_t bytes) {
  ++seen_;
  if (!why_stopped_.empty() || bytes > most_packet_bytes) {
    ++missing_;
    return nullptr;
  }
  return memory_.data() + gathered_ + packet_head_bytes;
}

void CaptureFile::end(Direction direction, Duration since_1970, size_t bytes) {
  const size_t kept = settings_.snap_bytes == 0 ? bytes : std::min(bytes, settings_.snap_bytes);
  latest_ = since_1970;
  gathered_ += put_packet(memory_.data() + gathered_, {.direction = direction,
                                                       .since_1970 = since_1970,
                                                       .bytes = static_cast<uint32_t>(bytes),
                                                       .kept_bytes = static_cast<uint32_t>(kept)});
}

void CaptureFile::take_back(const Mark& mark) {
  gathered_ = mark.gathered;
  seen_ = mark.seen;
  missing_ = mark.missing;
}

void CaptureFile::make_room() {
  if (gathered_ >= much_bytes) flush();
}

void CaptureFile::tend(Time now) {
  make_room();
  if (gathered_ == 0) return;
  if (due_ == never) due_ = now + patience;
  if (now >= due_) flush();
}

void CaptureFile::flush() {
  due_ = never;
  if (gathered_ == 0) return;
  const uint64_t own = settings_.limit_bytes == 0 ? UINT64_MAX : settings_.limit_bytes;
  const uint64_t allowed_by_system = most_bytes_of_a_file();
  const uint64_t most = std::min(own, allowed_by_system);
  const uint64_t left = most > offset_ ? most - offset_ : 0;
  const size_t allowed = std::min<uint64_t>(gathered_, left);
  const size_t written = write_all(descriptor_, memory_.data(), allowed, offset_);
  if (written < allowed) return stop(std::strerror(errno), written);
  // The last block must fit behind the packets.
  if (gathered_ + most_statistics_bytes > left) {
    return stop(own <= allowed_by_system ? "the file's limit was reached" : std::strerror(EFBIG),
                left);
  }
  offset_ += gathered_;
  gathered_ = 0;
}

// Ends the file. `written` bytes of the gathered packets are in it, or would fit. Keeps only as
// many packets as leave room for the last block within these bytes: on a full disk there is no
// other room.
void CaptureFile::stop(const char* why, size_t written) {
  size_t kept = 0;
  for (size_t at = 0; at < gathered_;) {
    at += block_bytes(memory_.data() + at);
    if (at + most_statistics_bytes > written) {
      ++missing_;
    } else {
      kept = at;
    }
  }
  offset_ += kept;
  gathered_ = 0;
  why_stopped_ = "capture stopped: ";
  why_stopped_ += why;
  write_statistics();
}

// Writes the last block, and cuts the file behind it. Called again at close if the file ended
// early.
void CaptureFile::write_statistics() {
  std::byte block[most_statistics_bytes];
  const size_t bytes = put_statistics(
      block, {.since_1970 = latest_, .seen = seen_, .missing = missing_, .comment = why_stopped_});
  const bool whole = write_all(descriptor_, block, bytes, offset_) == bytes;
  [[maybe_unused]] const int cut =
      ftruncate(descriptor_, static_cast<off_t>(whole ? offset_ + bytes : offset_));
}

}  // namespace urma::drivers::pcap
