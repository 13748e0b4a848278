#pragma once

#include "apps/common/failure.h"

namespace urma::stat {

using namespace apps;

}  // namespace urma::stat
