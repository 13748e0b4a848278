// SPDX-License-Identifier: Apache-2.0
#include "base/entropy.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace urma {
namespace {

// Requests of up to 256 bytes are never cut short once the pool is initialised; until then the call
// may be interrupted.
bool fill(void* numbers, size_t bytes) {
  ssize_t got = -1;
  do got = getrandom(numbers, bytes, 0);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(bytes);
}

}  // namespace

bool SecureEntropy::available() {
  uint64_t number = 0;
  return fill(&number, sizeof number);
}

uint64_t SecureEntropy::next() {
  if (left_ == 0) {
    URMA_ASSERT(fill(numbers_, sizeof numbers_), "the kernel's generator goes on answering");
    left_ = batch;
  }
  return std::exchange(numbers_[--left_], 0);
}

}  // namespace urma
