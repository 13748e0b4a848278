// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/failed.h"
#include "urma/core/result.h"

namespace urma::drivers::cxl {

class WindowLock;

// Builds errors that name the window.
struct WindowErrors {
  std::string path;

  // Begins an error about the window; the parts say what failed and why.
  template <class... Parts>
  Failed failed(Status status, const Parts&... parts) const {
    return urma::failed(status, "cxl: the window ", path, " ", parts...);
  }
  Error cannot_lock(const WindowLock& lock) const;
  // `error` is the errno of a call that asked the file system for `needed_bytes`.
  Error cannot_have(std::string_view what, uint64_t needed_bytes, int error) const;
  // The file cannot be opened to be written, because its file system is mounted read-only.
  Error read_only() const;
};

}  // namespace urma::drivers::cxl
