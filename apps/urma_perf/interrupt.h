#pragma once

#include "apps/common/interrupt.h"

namespace urma::perf {

using apps::handle_signals;
using apps::interrupted;

}  // namespace urma::perf
