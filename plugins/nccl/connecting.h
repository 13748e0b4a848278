// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "plugins/nccl/sender.h"

namespace urma::nccl {

// The senders that NCCL has not been given yet. Between two calls of `connect` the handle holds
// only a number, so that a damaged handle is an error. Any thread calls these functions.

// Keeps the sender, and returns its number, which is not 0.
uint64_t keep(std::unique_ptr<Sender> sender);
// Returns the sender with this number, which is kept no longer; null if there is none.
std::unique_ptr<Sender> resume(uint64_t number);
// Ends all connections that NCCL has given up.
void drop_all();

}  // namespace urma::nccl
