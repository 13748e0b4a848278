// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>

#include "urma/core/result.h"

namespace urma::drivers::udp {

// The functions of liburing that are not inline. The library is loaded for the first device that
// asks for it, so that liburma does not depend on it. The functions that are inline use members of
// io_uring that versions before 2.3 do not set, although those have the same soname.
struct UringLibrary {
  decltype(&io_uring_queue_init_params) queue_init_params;
  decltype(&io_uring_queue_exit) queue_exit;
  decltype(&io_uring_submit_and_wait) submit_and_wait;
  decltype(&io_uring_register_buf_ring) register_buf_ring;
};

// Errors: unsupported (it is not installed, or older than 2.3). Any thread may call it.
Result<const UringLibrary*> load_uring_library();

}  // namespace urma::drivers::udp
