// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace urma {

// The file system that a file lies in: where it is mounted, and how much room it has. Used for
// messages about a lack of room. Making it reads files in /proc and allocates, so it is not for the
// data path.
struct FileSystem {
  std::string mount_point = {};  // empty: unknown
  std::string kind = {};         // as in /proc/filesystems: "tmpfs", "hugetlbfs", "ext4"
  std::string options = {};      // of the file system, separated by commas
  uint64_t page_bytes = 0;       // the unit in which it gives room
  uint64_t bytes = 0;            // 0: unlimited or unknown
  uint64_t free_bytes = 0;       // for this user
  uint64_t files = 0;            // inodes; 0: unlimited or unknown
  uint64_t free_files = 0;
};
FileSystem file_system_of(int descriptor);
// Returns the file system of a file. If the file does not exist, that of the nearest directory
// above it that exists.
FileSystem file_system_of(const std::string& path);
// Returns how many bytes the file system has allocated for a file, or 0 if that is unknown.
uint64_t allocated_bytes(int descriptor);

// Returns the mount in which `path` lies on `device`, out of those that `mountinfo` lists
// (proc(5)). Only its mount point, kind and options are filled in.
FileSystem find_mount(std::string_view mountinfo, dev_t device, std::string_view path);

// Returns whether a system call that failed with this errno lacked room: space, inodes, quota or
// memory.
bool is_shortage(int error);

// Says why there is no room, and how to make room: `cure` follows "Fix: " in an error's message,
// and names the commands to type.
struct Shortage {
  std::string why;
  std::string cure;
};
// `error` is the errno of the system call that failed, `needed_bytes` how many bytes it asked for.
Shortage explain_shortage(const FileSystem& at, uint64_t needed_bytes, int error);

// The direction in which a size such as "904K" or "64M" is rounded: free room down, needed room up.
enum class Rounded : uint8_t { down, up };
std::string size_for_people(uint64_t bytes, Rounded to);

}  // namespace urma
