#include "urma/base/entropy.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "urma/base/assert.h"

namespace urma {

uint64_t SecureEntropy::next() {
  if (left_ == 0) {
    // Requests of up to 256 bytes are never cut short once the pool is initialised; until then
    // the call may be interrupted.
    ssize_t got = -1;
    do got = getrandom(numbers_, sizeof numbers_, 0);
    while (got < 0 && errno == EINTR);
    URMA_ASSERT(got == sizeof numbers_, "the kernel's generator answers (Linux 3.17 or later)");
    left_ = batch;
  }
  return std::exchange(numbers_[--left_], 0);
}

}  // namespace urma
