// SPDX-License-Identifier: Apache-2.0
#pragma once

// The open devices of this user's processes, with their counters and channels, for tools such as
// urma_stat. A process reads its own device's counters by Device::stats.

#include "urma/core/cxx20.h"

#include "urma/core/export.h"
#include "urma/core/observed.h"
#include "urma/core/result.h"
#include "urma/core/statistics.h"

namespace urma {

// Lists the open devices of all processes of this user that share /dev/shm with this process,
// except those opened with DeviceOptions::observable = false. A device reports its counters at most
// ten times a second, 0.1 s after a change; an inlined device does so only while it is polled. Also
// removes the files that killed processes have left in /dev/shm. Any thread may call it. It takes
// about 50 us, and 10 us for each device. Errors: permission_denied (another user made this user's
// directory), no_resources.
URMA_API Result<Observed> observe_devices();

// The same for the processes of all users that this process may look at: of all users for root, of
// this user otherwise. The pages of other users are read as files that a hostile user wrote: no
// link is followed, each file must belong to the user of its directory, sizes are bounded, and
// nothing is removed. ObservedDevice::uid is what the kernel says; a process can lie about itself
// in all else, also about its PID. At most 256 users that have a device are read, those with the
// lowest numbers, and 512 devices of each; `skipped` says if there are more.
URMA_API Result<Observed> observe_all_devices();

}  // namespace urma
