// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "apps/common/message.h"

namespace urma::apps::notify {

// A transfer keeps these of a file or a folder, beside its name and its bytes. Owner and group are
// those of the receiver.
struct Attributes {
  uint32_t mode = 0644;      // the nine bits of access; others are ignored
  int64_t seconds = 0;       // of the last modification, since 1970
  uint32_t nanoseconds = 0;  // in addition
  URMA_BODY(Attributes, mode, seconds, nanoseconds)
};

inline Attributes attributes_of(const struct stat& about) {
  return {.mode = about.st_mode & 0777,
          .seconds = about.st_mtim.tv_sec,
          .nanoseconds = static_cast<uint32_t>(about.st_mtim.tv_nsec)};
}

// Gives an open file these attributes. Returns false if the system refuses; errno says why.
inline bool apply(const Attributes& attributes, int file) {
  constexpr uint32_t second = 1'000'000'000;
  const timespec modified = {.tv_sec = attributes.seconds,
                             .tv_nsec = static_cast<long>(attributes.nanoseconds % second)};
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, modified};
  return fchmod(file, attributes.mode & 0777) == 0 && futimens(file, times) == 0;
}

}  // namespace urma::apps::notify
