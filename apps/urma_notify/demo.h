// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/urma_notify/options.h"

namespace urma::apps::notify {

// Shows what two processes did, which were recorded at full speed just before: slowly, on a screen
// of 80 x 24 on a terminal, which is restored; as lines elsewhere.
Exit demo(const Options& options);

}  // namespace urma::apps::notify
