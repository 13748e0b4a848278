#pragma once

#include "apps/common/failure.h"

namespace urma::perf {

using namespace apps;

}  // namespace urma::perf
