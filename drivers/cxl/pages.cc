// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/pages.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <string>

#include "base/file_system.h"

namespace urma::drivers::cxl {
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
  } else if (const std::string options = file_system_of(descriptor).options;
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
