// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/incoming.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/urma_notify/place.h"

namespace urma::apps::notify {
namespace {

// While they are read, the senders' blocks wait.
constexpr int read_back_at_a_time = 4;

const char* cure_of(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "make room there (or raise the receiver's limit, ulimit -f), and send the file again: "
             "the transfer resumes";
    case EACCES:
    case EPERM:
    case EROFS:
      return "let the receiver's user write there, or serve another folder";
    case EEXIST:
      return "remove or rename it there, or send with --replace";
    case ELOOP:
      return "remove the symbolic link of that name there";
    default:
      return "remove the cause there, and send the file again: the transfer resumes";
  }
}

// Renames the file, unless another file has that name. Returns false if it fails; errno says why.
bool rename_to_vacant(int folder, const char* from, const char* to) {
  if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return true;
  // Some file systems and kernels do not support this rename. Making a second link checks the same.
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (linkat(folder, from, folder, to, 0) != 0) return false;
  if (unlinkat(folder, from, 0) == 0) return true;
  // If the file kept both names, the next attempt would truncate the finished file.
  const int why = errno;
  unlinkat(folder, to, 0);
  errno = why;
  return false;
}

uint64_t size_of(int file) {
  struct stat about {};
  return fstat(file, &about) == 0 ? static_cast<uint64_t>(about.st_size) : 0;
}
bool is_regular(int file) {
  struct stat about {};
  return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Failure file_failed(const std::string& name, std::string_view what, int reason) {
  return {Exit::error,
          fmt::format("{}: {}: {}. Fix: {}", name, what, std::strerror(reason), cure_of(reason))};
}

File open_folder(const std::string& path) {
  File folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && faccessat(folder.get(), ".", W_OK | X_OK, 0) == 0) return folder;
  throw Failure(Exit::error, fmt::format("{}: {}. Fix: name a folder that may be written", path,
                                         std::strerror(errno)));
}

Incoming::Incoming(int root, const Offer& offer)
    : name_(offer.name),
      attributes_(offer.attributes),
      bytes_(offer.bytes),
      unallocated_(offer.unallocated),
      replace_(offer.replace) {
  Place place = open_place(root, name_);
  folder_ = std::move(place.folder);
  leaf_ = place.leaf;
  part_name_ = "." + leaf_ + std::string(part_end);
  if (blocks_of(bytes_) >= most_blocks) throw failed("its size", EFBIG);
  constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  part_ = File(openat(folder_.get(), part_name_.c_str(), flags | O_RDWR | O_CREAT, 0666));
  if (!part_) throw failed("opening its partial file", errno);
  if (!is_regular(part_.get())) throw failed("opening its partial file", EEXIST);
  lock();
  have_ = size_of(part_.get()) / block_bytes;
  if (size_of(part_.get()) == bytes_) have_ = blocks_of(bytes_);
  have_ = std::min(have_, blocks_of(bytes_));
  if (replace_) return;
  existing_ = File(openat(folder_.get(), leaf_.c_str(), flags | O_RDONLY));
  if (!existing_) {
    if (errno != ENOENT) throw failed("looking for it", errno);
    return;
  }
  if (!is_regular(existing_.get()) || size_of(existing_.get()) != bytes_) {
    remove_if_empty();
    throw failed("another file has its name", EEXIST);
  }
  whole_ = true;
  have_ = blocks_of(bytes_);
}

Incoming::~Incoming() {
  if (!committed_) remove_if_empty();
}

// Two receivers may open the partial file before one of them renames it to its final name. The
// other one must not continue with it. So a receiver checks, after it has the lock, that the name
// still belongs to this file.
void Incoming::lock() {
  struct stat ours {};
  struct stat named {};
  if (flock(part_.get(), LOCK_EX | LOCK_NB) == 0 && fstat(part_.get(), &ours) == 0 &&
      fstatat(folder_.get(), part_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      ours.st_ino == named.st_ino) {
    return;
  }
  throw Busy(Exit::error, fmt::format("{}: another sender is sending a file of that name. Fix: "
                                      "wait until it is done, or give this one another name with "
                                      "--as NAME",
                                      name_));
}

void Incoming::remove_if_empty() {
  if (size_of(part_.get()) == 0) unlinkat(folder_.get(), part_name_.c_str(), 0);
}

std::vector<uint32_t> Incoming::checks(uint64_t first, size_t most) const {
  std::vector<uint32_t> all;
  std::vector<std::byte> block(block_bytes);
  for (uint64_t i = first; i < have_ && all.size() < most; ++i) {
    const auto some = std::span(block).first(bytes_of_block(bytes_, i));
    read(whole_ ? existing_.get() : part_.get(), i, some);
    all.push_back(check_of(some));
  }
  return all;
}

void Incoming::begin(uint64_t first) {
  if (whole_) throw failed("another file has its name", EEXIST);
  const uint64_t keep = std::min(std::min(first, have_) * block_bytes, bytes_);
  if (ftruncate(part_.get(), static_cast<off_t>(keep)) != 0) {
    throw failed("truncating its partial file", errno);
  }
  struct statvfs disk {};
  if (fstatvfs(part_.get(), &disk) != 0) return;
  const uint64_t room = uint64_t{disk.f_bavail} * disk.f_frsize;
  const uint64_t missing = bytes_ - keep - std::min(unallocated_, bytes_ - keep);
  if (room >= missing) return;
  throw Failure(Exit::error,
                fmt::format("{}: {} bytes are still to come, and the disk has room for "
                            "{}. Fix: {}",
                            name_, missing, room, cure_of(ENOSPC)));
}

void Incoming::put(uint64_t number, std::span<const std::byte> block) {
  auto at = static_cast<off_t>(number * block_bytes);
  while (!block.empty()) {
    const ssize_t written = pwrite(part_.get(), block.data(), block.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw failed("writing", written < 0 ? errno : ENOSPC);
    block = block.subspan(static_cast<size_t>(written));
    at += written;
  }
}

// `begin` has removed all that was behind the blocks that are kept.
void Incoming::skip(uint64_t number) {
  const uint64_t end = number * block_bytes + bytes_of_block(bytes_, number);
  if (ftruncate(part_.get(), static_cast<off_t>(end)) != 0) throw failed("writing", errno);
}

bool Incoming::read_back(uint64_t before) {
  std::vector<std::byte> block(block_bytes);
  for (int i = 0; i < read_back_at_a_time && read_back_ < before; ++i, ++read_back_) {
    const auto some = std::span(block).first(bytes_of_block(bytes_, read_back_));
    read(whole_ ? existing_.get() : part_.get(), read_back_, some);
    digest_.add(some);
  }
  return read_back_ >= before;
}

void Incoming::commit() {
  // The file may have been received before.
  const File& file = whole_ ? existing_ : part_;
  if (size_of(file.get()) != bytes_) throw failed("its partial file has changed", EIO);
  if (!apply(attributes_, file.get())) throw failed("setting its mode and time", errno);
  if (fsync(file.get()) != 0) throw failed("writing it to the disk", errno);
  if (whole_) return;
  const int folder = folder_.get();
  const bool named = replace_ ? renameat(folder, part_name_.c_str(), folder, leaf_.c_str()) == 0
                              : rename_to_vacant(folder, part_name_.c_str(), leaf_.c_str());
  if (!named) throw failed("renaming its partial file", errno);
  committed_ = true;
  if (fsync(folder) != 0) throw failed("writing its name to the disk", errno);
}

void Incoming::discard() {
  if (!whole_ && ftruncate(part_.get(), 0) != 0) throw failed("truncating its partial file", errno);
}

void Incoming::read(int file, uint64_t number, std::span<std::byte> block) const {
  auto at = static_cast<off_t>(number * block_bytes);
  while (!block.empty()) {
    const ssize_t got = pread(file, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw failed("reading it back", got < 0 ? errno : EIO);
    block = block.subspan(static_cast<size_t>(got));
    at += got;
  }
}

}  // namespace urma::apps::notify
