#include "apps/urma_notify/lines.h"

#include <fmt/format.h>

#include <atomic>

#include "apps/common/failure.h"
#include "apps/common/output.h"

namespace urma::notify {

void say_line(const std::string& line) {
  static std::atomic_flag said;
  try {
    apps::print(line + "\n", "files go on, untold");
  } catch (const apps::Failure& failure) {
    if (!said.test_and_set()) apps::print_error(fmt::format("urma_notify: {}", failure.what()));
  }
}

}  // namespace urma::notify
