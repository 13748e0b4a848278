// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/lines.h"

#include <fmt/format.h>

#include <atomic>

#include "apps/common/failure.h"
#include "apps/common/output.h"

namespace urma::apps::notify {

void say_line(const std::string& line) {
  static std::atomic_flag said;
  try {
    apps::print(apps::printable(line) + "\n", "the progress of files is no longer printed");
  } catch (const apps::Failure& failure) {
    if (!said.test_and_set()) complain(failure.what());
  }
}

void complain(std::string_view what) {
  apps::print_error(fmt::format("urma_notify: {}", apps::printable(what)));
}

}  // namespace urma::apps::notify
