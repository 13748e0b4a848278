// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/urma_feed/options.h"

namespace urma::apps::feed {

// Sends messages until their number is reached or Ctrl-C, and prints how many there were.
Exit produce(const Options& options);

}  // namespace urma::apps::feed
