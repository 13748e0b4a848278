#include "urma/observe.hpp"

#include "api/handles.h"
#include "engine/stats_files.h"

namespace urma {

Result<Observed> observe_devices() {
  return guarded("observe_devices", [] { return engine::StatsFiles::of_this_user().look(); });
}

}  // namespace urma
