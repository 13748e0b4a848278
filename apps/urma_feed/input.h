// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/urma_feed/options.h"

namespace urma::apps::feed {

// Sends what standard input has, as lines or records, to all consumers of the options. Ends when
// all have acknowledged everything, or are lost; prints a line for each. Returns the exit code.
Exit produce_input(const Options& options);

}  // namespace urma::apps::feed
