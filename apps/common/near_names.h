// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/near_names.h"

namespace urma::apps {

using urma::near_names;

}  // namespace urma::apps
