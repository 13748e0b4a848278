#pragma once

#include "apps/urma_feed/options.h"

namespace urma::feed {

// Sends messages until there were enough, or interrupted, and says how many there were.
Exit produce(const Options& options);

}  // namespace urma::feed
