// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"
#include "drivers/cxl/cxl_port.h"

namespace urma::drivers {
namespace {

void read_options(OptionReader& options, cxl::WindowSettings& settings) {
  options.size("size", settings.bytes, cxl::least_window_bytes, uint64_t{1} << 46,
               {"the size of a new window, all of whose memory is taken immediately; or the size "
                "of a device",
                "the size of the file; for a new one 1G, whose memory is taken as it is used"});
  options.flag("coherent", settings.coherent,
               {"no: the hardware does not keep the memory coherent, so lines are written back and "
                "refreshed",
                "as the window was made; yes for a new one"});
  std::string share = settings.hands_over ? "segment" : "window";
  options.text("share", share,
               {"segment: each segment is a file of its own, which peers that show the token "
                "receive; window: all segments are in the window",
                "window"});
  settings.hands_over = share == "segment";
  if (share != "segment" && share != "window") options.refuse("share", "segment or window");
  options.number("double", settings.double_seed,
                 {"with coherent=no, for tests: the seed of simulated caches that are not coherent",
                  "no simulated caches"});
  if (settings.coherent.value_or(true))
    options.refuse("double", "left out, or given together with coherent=no");
  else if (settings.hands_over)
    options.refuse("share", "left out: memory that is not kept coherent is not mapped");
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  cxl::WindowSettings settings{.path = device.address};
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  if (!settings.path.empty() && settings.path.front() != '/') {
    return device_error(device, device.address_offset,
                        "the path of a window begins with /. Fix: cxl:/dev/shm/NAME, or cxl: for "
                        "the window of this user");
  }
  return cxl::CxlPort::open(settings);
}

constexpr Driver::Pair pairs[] = {{"cxl:", "cxl:"}, {"cxl:?share=segment", "cxl:?share=segment"}};

constexpr Driver::Form forms[] = {
    {"cxl:PATH",
     "a file in /dev/shm or hugetlbfs (made if it does not exist), a /dev/dax device, or the "
     "resource file of a PCI BAR; without PATH /dev/shm/urma-UID, the window of this user",
     "cxl:", [](OptionReader& options) {
       cxl::WindowSettings settings;
       read_options(options, settings);
     }}};

}  // namespace

extern const Driver cxl_driver;
const Driver cxl_driver = {"cxl",
                           "a window of memory that processes share: the fastest way on one host",
                           pairs, open, forms};

}  // namespace urma::drivers
