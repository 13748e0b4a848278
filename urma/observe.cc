#include "urma/observe.hpp"

#include "urma/engine/stats_files.h"
#include "urma/handles.h"

namespace urma {

Result<Observed> observe_devices() {
  return guarded("observe_devices", [] { return engine::StatsFiles::of_this_user().look(); });
}

}  // namespace urma
