// SPDX-License-Identifier: Apache-2.0
#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "base/above_standard.h"

namespace urma {
namespace {

constexpr uint64_t kibibyte = 1 << 10;
constexpr uint64_t mebibyte = 1 << 20;
constexpr uint64_t gibibyte = 1 << 30;
constexpr uint64_t least_advised_bytes = 64 * mebibyte;

// Returns what the file holds, or nothing if it cannot be read. An ifstream would not keep its
// descriptor above the standard ones.
std::string contents(const std::string& path) {
  struct File {
    int descriptor;
    ~File() {
      if (descriptor >= 0) close(descriptor);
    }
  };
  const File file{above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while (file.descriptor >= 0 && (got = ::read(file.descriptor, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<size_t>(got));
  }
  return text;
}

std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// The kernel writes a space in a path as \040, and other characters likewise.
std::string unescaped(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    unsigned code = 0;
    const bool escaped =
        path[i] == '\\' && path.size() - i > 3 &&
        std::from_chars(path.data() + i + 1, path.data() + i + 4, code, 8).ec == std::errc{};
    out += escaped ? static_cast<char>(code) : path[i];
    if (escaped) i += 3;
  }
  return out;
}

bool lies_below(std::string_view path, std::string_view mount_point) {
  if (mount_point == "/") return true;
  return path.starts_with(mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

// Returns the real path of an open file, also of one that has no name any more.
std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t bytes = readlink(link.c_str(), path.data(), path.size());
  return bytes < 0 ? std::string() : std::string(path.data(), static_cast<size_t>(bytes));
}

std::string with_size(const FileSystem& at) {
  const std::string kind = at.kind.empty() ? "" : " (" + at.kind;
  const std::string size = at.bytes == 0 ? "" : ", " + size_for_people(at.bytes, Rounded::down);
  return (at.mount_point.empty() ? "of that file" : at.mount_point) +
         (kind.empty() ? "" : kind + size + ")");
}

std::string place_of(const FileSystem& at) {
  return at.mount_point.empty() ? "DIRECTORY" : at.mount_point;
}

Shortage of_quota(const FileSystem& at, const std::string& needed) {
  return {"this user's quota on the file system " + with_size(at) + " is used up, and " + needed +
              " are needed",
          "remove files of yours in " + place_of(at) + " (quota -s shows the quota)"};
}

Shortage of_inodes(const FileSystem& at) {
  const std::string there = place_of(at);
  Shortage out{"the file system " + with_size(at) + " has none of its " + std::to_string(at.files) +
                   " inodes free",
               "remove files in " + there + " that no process uses (df -i " + there + ")"};
  if (at.kind == "tmpfs") {
    out.cure +=
        ", or as root: mount -o remount,nr_inodes=" + std::to_string(2 * at.files) + " " + there;
  }
  return out;
}

Shortage of_system_memory(const FileSystem& at, const std::string& needed) {
  return {"the system, or this container, has no memory for " + needed +
              ", though the file system " + with_size(at) + " has room",
          "end programs that use memory (free -m), or give the container more: docker run "
          "--memory=2g"};
}

Shortage of_huge_pages(const FileSystem& at, uint64_t needed_bytes) {
  const std::string file = "/sys/kernel/mm/hugepages/hugepages-" +
                           std::to_string(at.page_bytes / kibibyte) + "kB/nr_hugepages";
  const uint64_t pages = (needed_bytes + at.page_bytes - 1) / at.page_bytes;
  const uint64_t reserved = std::strtoull(contents(file).c_str(), nullptr, 10);
  return {"the file system " + with_size(at) + " has too few free huge pages of " +
              size_for_people(at.page_bytes, Rounded::down) + ", and " + std::to_string(pages) +
              " are needed",
          "as root: echo " + std::to_string(reserved + pages) + " > " + file};
}

Shortage of_space(const FileSystem& at, uint64_t needed_bytes, const std::string& needed) {
  const std::string there = place_of(at);
  Shortage out{"the file system " + with_size(at) + " has " +
                   size_for_people(at.free_bytes, Rounded::down) + " free, and " + needed +
                   " are needed",
               "remove files in " + there + " that no process uses (df " + there + ")"};
  if (at.kind != "tmpfs") return out;
  const uint64_t wanted = std::max(at.bytes + needed_bytes, least_advised_bytes);
  const std::string size = size_for_people(std::bit_ceil(wanted), Rounded::up);
  out.cure += ", or as root: mount -o remount,size=" + size + " " + there;
  if (there == "/dev/shm") out.cure += "; a container: docker run --shm-size=" + size;
  return out;
}

}  // namespace

std::string size_for_people(uint64_t bytes, Rounded to) {
  for (const auto& [unit, letter] : {std::pair{gibibyte, "G"}, {mebibyte, "M"}}) {
    if (bytes % unit == 0 && bytes > 0) return std::to_string(bytes / unit) + letter;
  }
  // A mebibyte would say too little about small sizes.
  const bool small = bytes < 10 * mebibyte;
  const uint64_t unit = small ? kibibyte : mebibyte;
  const uint64_t count = (bytes + (to == Rounded::up ? unit - 1 : 0)) / unit;
  return std::to_string(count) + (small ? "K" : "M");
}

// A line consists of ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [FIELDS...] - KIND SOURCE
// SUPER-OPTIONS. A later mount hides an earlier one at the same mount point; a file system may be
// mounted at several mount points.
FileSystem find_mount(std::string_view mountinfo, dev_t device, std::string_view path) {
  const std::string wanted = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  FileSystem found;
  bool below = false;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    next_word(line);
    next_word(line);
    if (next_word(line) != wanted) continue;
    next_word(line);
    std::string mount_point = unescaped(next_word(line));
    const bool fits = lies_below(path, mount_point);
    const bool better = fits ? !below || mount_point.size() >= found.mount_point.size() : !below;
    const size_t fields = line.find(" - ");
    if (!better || fields == line.npos) continue;
    line.remove_prefix(fields + 3);
    below = fits;
    found.mount_point = std::move(mount_point);
    found.kind = next_word(line);
    next_word(line);
    found.options = line;
  }
  return found;
}

FileSystem file_system_of(int descriptor) {
  struct stat about {};
  struct statfs room {};
  if (fstat(descriptor, &about) != 0 || fstatfs(descriptor, &room) != 0) return {};
  FileSystem out = find_mount(contents("/proc/self/mountinfo"), about.st_dev, path_of(descriptor));
  const auto unit = static_cast<uint64_t>(room.f_bsize);
  out.page_bytes = unit;
  out.bytes = room.f_blocks * unit;
  out.free_bytes = room.f_bavail * unit;
  out.files = room.f_files;
  out.free_files = room.f_ffree;
  return out;
}

FileSystem file_system_of(const std::string& path) {
  std::string at = path;
  int descriptor = -1;
  while ((descriptor = above_standard(::open(at.c_str(), O_PATH | O_CLOEXEC))) < 0) {
    const size_t slash = at.rfind('/');
    if (slash == at.npos || at == "/") return {};
    at.resize(std::max<size_t>(slash, 1));
  }
  FileSystem out = file_system_of(descriptor);
  close(descriptor);
  return out;
}

uint64_t allocated_bytes(int descriptor) {
  constexpr uint64_t block_bytes = 512;
  struct stat about {};
  return fstat(descriptor, &about) == 0 ? static_cast<uint64_t>(about.st_blocks) * block_bytes : 0;
}

bool is_shortage(int error) { return error == ENOSPC || error == EDQUOT || error == ENOMEM; }

Shortage explain_shortage(const FileSystem& at, uint64_t needed_bytes, int error) {
  const std::string needed = size_for_people(needed_bytes, Rounded::up);
  if (error == EDQUOT) return of_quota(at, needed);
  if (at.kind == "hugetlbfs" && at.page_bytes > 0) return of_huge_pages(at, needed_bytes);
  if (at.files > 0 && at.free_files == 0) return of_inodes(at);
  const bool room = at.bytes == 0 || at.free_bytes >= needed_bytes;
  if (error == ENOMEM || (at.kind == "tmpfs" && room)) return of_system_memory(at, needed);
  return of_space(at, needed_bytes, needed);
}

}  // namespace urma
