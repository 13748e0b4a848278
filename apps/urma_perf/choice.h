// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// Returns for people, a line each, which device a client measures and why, and which others it does
// not and why (--verbose). Empty if this run has no device of its own.
std::vector<std::string> explain_device(const Options& options);

// Returns a processor and, if this machine has several NUMA nodes, its node; "any" if it is
// negative.
std::string processor_text(int processor);

}  // namespace urma::apps::perf
