// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace urma::test {

// Whether the program runs under a sanitizer of memory or threads, which makes everything ten times
// slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace urma::test
