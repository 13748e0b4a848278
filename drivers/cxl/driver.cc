#include "drivers/cxl/cxl_port.h"

namespace urma::drivers {
namespace {

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  cxl::WindowSettings settings{.path = device.address};
  OptionReader options(device);
  options.size("size", settings.bytes, cxl::least_window_bytes, uint64_t{1} << 46);
  options.flag("coherent", settings.coherent);
  options.number("double", settings.double_seed);
  if (settings.coherent.value_or(true))
    options.refuse("double", "left out, or stand beside coherent=no");
  if (auto done = options.finish(); !done) return done.error();
  if (!settings.path.empty() && settings.path.front() != '/') {
    return device_error(device, device.address_place,
                        "a window is named by its whole path. Fix: cxl:/dev/shm/NAME, or cxl: for "
                        "this user's own");
  }
  return cxl::CxlPort::open(settings);
}

constexpr Driver::Pair pairs[] = {{"cxl:", "cxl:"}};

}  // namespace

extern const Driver cxl_driver;
const Driver cxl_driver = {
    "cxl", "a window of memory that processes share: the fastest way on one host", pairs, open};

}  // namespace urma::drivers
