#pragma once

#include <string>

#include "apps/common/devices.h"
#include "apps/common/servers.h"
#include "apps/urma_perf/threads_mode.h"

namespace urma::apps::perf {

// Describes urma_perf for a client of this test.
Service service_for(std::string_view test);

// If `retransmit` is null, the device's default is used. Warnings about the mode go to stderr.
Device open_device(const std::string& text, const ThreadsMode& mode,
                   const NamedRetransmission* retransmit);

}  // namespace urma::apps::perf
