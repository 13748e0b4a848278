// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/export.h"
#include "urma/core/time.h"

namespace urma {

// The source of a value.
enum class Origin : uint8_t {
  by_default,     // the library's default
  device_string,  // an option or the address in the device string
  option,         // an option of the call (DeviceOptions)
  environment,    // an environment variable of the process
  system,         // the kernel, an interface or a file
  driver,         // a property of the medium
  measured,       // measured on this machine, by this process
  drawn,          // drawn at random, or the first free one
  file,           // the configuration file
};
// Returns the name of the origin, for example "default" or "device string". Any thread may call it.
constexpr std::string_view name(Origin origin) {
  constexpr std::string_view names[] = {"default",     "device string", "option",
                                        "environment", "system",        "driver",
                                        "measured",    "drawn",         "file"};
  return origin <= Origin::file ? names[static_cast<size_t>(origin)] : "unknown";
}

// One value that a device works with, and its source, for people and for tools that show it
// (Device::settings). The name of a driver's option is DRIVER.OPTION; other names have no dot.
struct Setting {
  std::string name;                    // "udp.mtu", "operation_timeout"
  std::string value;                   // as people write it, with its unit
  Origin origin = Origin::by_default;  // where the value comes from
  std::string source = {};   // details of the origin: the interface, variable or limit; or empty
  std::string meaning = {};  // what the name means
};

// The settings of a device, each name once.
using SettingList = std::vector<Setting>;

// Replaces the setting of the same name, or appends it.
URMA_API void set(SettingList& settings, Setting setting);

// These return a value as people write it, and as device strings accept it: "64K", "15us", "5%",
// "yes". The text uses the largest unit that gives a whole number: 65536 is "64K".
URMA_API std::string size_text(uint64_t bytes);
URMA_API std::string duration_text(Duration duration);
URMA_API std::string fraction_text(double fraction);
// Returns "yes" or "no".
inline std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace urma
