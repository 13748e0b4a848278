#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace urma {

// The file system that a file lies in: where it is mounted, and how much room it has. For messages
// about a lack of room. Reads files in /proc and allocates, so it is not for the data path.
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
// The file need not exist: then its directory is asked, or the next one above that exists.
FileSystem file_system_of(const std::string& path);

// The mount, of those that `mountinfo` lists (proc(5)), in which `path` lies on `device`. Only its
// mount point, kind and options are filled in.
FileSystem find_mount(std::string_view mountinfo, dev_t device, std::string_view path);

// Whether a system call failed with this errno for lack of room: space, inodes, quota or memory.
bool is_shortage(int error);

// Why there is no room, and what to do about it: a text for behind "Fix: " that names commands.
struct Shortage {
  std::string why;
  std::string cure;
};
// `error`: the errno of what failed. `needed_bytes`: how many bytes it wanted.
Shortage explain_shortage(const FileSystem& at, uint64_t needed_bytes, int error);

// "904K", "64M": of what is free rounded down, of what is needed rounded up.
enum class Rounded : uint8_t { down, up };
std::string size_for_people(uint64_t bytes, Rounded to);

}  // namespace urma
