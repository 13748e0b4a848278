#include "drivers/cxl/cxl_port.h"

namespace urma::drivers {
namespace {

void read_options(OptionReader& options, cxl::WindowSettings& settings) {
  options.size("size", settings.bytes, cxl::least_window_bytes, uint64_t{1} << 46,
               {"how large it is made, all of its memory taken at once; a device's size",
                "what is there, else 1G, taken as it is used"});
  options.flag("coherent", settings.coherent,
               {"no: the hardware does not keep the memory coherent, so lines are written back and "
                "refreshed",
                "as it was made, else yes"});
  std::string share = settings.hands_over ? "segment" : "window";
  options.text("share", share,
               {"segment: each in a file of its own, whose descriptor goes to peers that show the "
                "token; window: all in the window",
                "window"});
  settings.hands_over = share == "segment";
  if (share != "segment" && share != "window") options.refuse("share", "segment or window");
  options.number(
      "double", settings.double_seed,
      {"with coherent=no, for tests: caches are acted, by chance from this seed", "not acted"});
  if (settings.coherent.value_or(true))
    options.refuse("double", "left out, or stand beside coherent=no");
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
    return device_error(device, device.address_place,
                        "a window is named by its whole path. Fix: cxl:/dev/shm/NAME, or cxl: for "
                        "this user's own");
  }
  return cxl::CxlPort::open(settings);
}

constexpr Driver::Pair pairs[] = {{"cxl:", "cxl:"}, {"cxl:?share=segment", "cxl:?share=segment"}};

constexpr Driver::Form forms[] = {
    {"cxl:PATH",
     "a file in /dev/shm or hugetlbfs (made when missing), a /dev/dax device, a PCI BAR's resource "
     "file; without PATH /dev/shm/urma-UID, this user's own",
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
