#pragma once

#include <string>

#include "apps/common/devices.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::perf {

using apps::device_towards;
using apps::devices_of_this_host;

// `retransmit` null: what suits the device. What is unwise about it is said on stderr.
Device open_device(const std::string& text, const ThreadsMode& mode,
                   const NamedRetransmission* retransmit);

}  // namespace urma::perf
