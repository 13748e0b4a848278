// SPDX-License-Identifier: Apache-2.0
#include "urma/observe.hpp"

#include "api/handles.h"
#include "engine/all_users.h"
#include "engine/stats_files.h"

namespace urma {

Result<Observed> observe_devices() {
  return guarded("observe_devices", [] { return engine::StatsFiles::of_this_user().look(); });
}

Result<Observed> observe_all_devices() {
  return guarded("observe_all_devices", [] { return engine::look_at_all_users(); });
}

}  // namespace urma
