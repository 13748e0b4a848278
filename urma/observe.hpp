#pragma once

// The open devices of this user's processes, seen from outside: what each is and what it counts.
// For tools (urma_stat is one); a process asks its own device by Device::stats.

#include "urma/core/cxx20.h"

#include "urma/core/export.h"
#include "urma/core/observed.h"
#include "urma/core/result.h"
#include "urma/core/statistics.h"

namespace urma {

// Of all processes of this user that share /dev/shm with this one, unless they opened it with
// DeviceOptions::observable off. Removes what processes left that were killed. A device reports at
// most ten times a second, a tenth of a second after something has changed; an inlined one, while
// it is polled. Any thread; some 50 us, and 10 for each device.
// Errors: permission_denied (somebody else made this user's directory), no_resources.
URMA_API Result<Observed> observe_devices();

}  // namespace urma
