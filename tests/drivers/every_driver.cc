// SPDX-License-Identifier: Apache-2.0
#include "tests/drivers/conformance_pairs.h"

#include "drivers/driver.h"
#include "tests/drivers/io_ways.h"
#include "tests/drivers/running_switch.h"
#include "tests/drivers/window_file.h"

namespace urma::test {

void for_each_pair(const std::function<void(const std::string&, const std::string&)>& on) {
  for (const drivers::Driver* driver : drivers::all_drivers()) {
    for (const auto& pair : driver->pairs) on(std::string(pair[0]), std::string(pair[1]));
  }
  for (const std::string& way : io_ways()) {
    if (way.empty()) continue;
    on("udp:" + way, "udp:" + way);
    on("udp:" + way + "&ecn=yes", "udp:?ecn=yes");
  }
  const WindowFile flushed("flushed");
  on(flushed.device("?size=16M&coherent=no"), flushed.device("?size=16M&coherent=no"));
  const WindowFile acted("acted");
  on(acted.device("?size=16M&coherent=no&double=1"),
     acted.device("?size=16M&coherent=no&double=2"));
  const RunningSwitch running;
  on(running.device(), running.device());
}

}  // namespace urma::test
