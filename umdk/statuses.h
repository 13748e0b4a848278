// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/include/ub/umdk/urma/urma_types.h"
#include "urma/core/work.h"

namespace urma::umdk {

// Returns the status of a completion record.
urma_cr_status_t record_status(const Completion& completion);
// Returns the errno, or URMA_FAIL, that means the same as a Status.
urma_status_t call_status(Status status);

}  // namespace urma::umdk
