// SPDX-License-Identifier: Apache-2.0
#include "drivers/udp/uring_io.h"

namespace urma::drivers::udp {

// Takes the place of uring_io.cc in a build without liburing.
Result<OpenedUring> open_uring(int) {
  return Error{Status::unsupported,
               "udp: io=uring: liburma was built without liburing. Fix: apt-get install pkgconf "
               "liburing-dev, then build it with cmake -DURMA_WITH_URING=ON; or io=mmsg"};
}

}  // namespace urma::drivers::udp
