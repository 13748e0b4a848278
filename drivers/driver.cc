#include "drivers/driver.h"

namespace urma::drivers {

Result<std::unique_ptr<PacketPort>> open_port(const DeviceString& device) {
  std::string names;
  for (const Driver* driver : all_drivers()) {
    if (driver->name == device.name) return driver->open(device);
    names += names.empty() ? "" : ", ";
    names += driver->name;
  }
  return device_error(device, device.place,
                      "there is no driver of this name in this build; it has: " + names);
}

}  // namespace urma::drivers
