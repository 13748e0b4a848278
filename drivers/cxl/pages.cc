#include "drivers/cxl/pages.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/above_standard.h"

namespace urma::drivers::cxl {
namespace {

// Returns what the file holds, or nothing if it cannot be read. An ifstream would not keep its
// descriptor above the standard ones.
std::string contents(const char* path) {
  struct File {
    int descriptor;
    ~File() {
      if (descriptor >= 0) close(descriptor);
    }
  };
  const File file{above_standard(::open(path, O_RDONLY | O_CLOEXEC))};
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while (file.descriptor >= 0 && (got = ::read(file.descriptor, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<size_t>(got));
  }
  return text;
}

// What comes last in the line of the mount that this file system is, its options.
std::string mount_options(dev_t device) {
  const std::string wanted =
      std::to_string(major(device)) + ":" + std::to_string(minor(device)) + " ";
  const std::string mounts = contents("/proc/self/mountinfo");
  for (size_t begin = 0, end = 0; (end = mounts.find('\n', begin)) != mounts.npos;) {
    const std::string line = mounts.substr(begin, end - begin);
    begin = end + 1;
    const size_t id = line.find(' ');
    const size_t parent = line.find(' ', id + 1);
    if (parent != std::string::npos && line.compare(parent + 1, wanted.size(), wanted) == 0) {
      return line.substr(line.rfind(' ') + 1);
    }
  }
  return "";
}

}  // namespace

Pages pages_of(int descriptor) {
  struct stat about {};
  struct statfs system {};
  if (fstat(descriptor, &about) != 0 || fstatfs(descriptor, &system) != 0) return {};
  Pages out;
  if (!S_ISREG(about.st_mode)) {
    out.text = "the device's own pages";
  } else if (system.f_type == HUGETLBFS_MAGIC) {
    out.bytes = static_cast<uint64_t>(system.f_bsize);
    out.text = "pages of " + std::to_string(out.bytes >> 20) + "M";
  } else if (const std::string options = mount_options(about.st_dev);
             options.find("huge=always") != std::string::npos ||
             options.find("huge=within_size") != std::string::npos) {
    out.asked = true;
    out.text = "huge pages where the system has some";
  } else {
    // With huge=advise, memory that a file takes in advance, as ours does, comes in small pages.
    out.text = "pages of 4K";
    out.advice = "huge ones: a file in hugetlbfs, or in a tmpfs with huge=within_size";
  }
  return out;
}

}  // namespace urma::drivers::cxl
