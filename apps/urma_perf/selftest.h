// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// Runs each kind of work over each kind of device that every host has, between two processes, and
// checks the bytes. Takes a few seconds. Prints a line for each check and the verdict. Returns
// Exit::threshold if a check failed.
Exit selftest(const Options& options);

}  // namespace urma::apps::perf
