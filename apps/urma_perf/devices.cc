#include "apps/urma_perf/devices.h"

#include "apps/urma_perf/failure.h"

namespace urma::perf {

Device open_device(const std::string& text, const ThreadsMode& mode) {
  return must(urma::open(text, {.threads = mode.threads, .congestion = {}, .limits = {}}),
              "opening the device");
}

}  // namespace urma::perf
