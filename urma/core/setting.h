#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/export.h"
#include "urma/core/time.h"

namespace urma {

// Who decided a value.
enum class Origin : uint8_t {
  by_default,     // nobody said anything
  device_string,  // an option or the address in it
  option,         // of the call: DeviceOptions
  environment,    // a variable of the process
  system,         // the kernel, an interface, a file
  driver,         // what the medium is
  measured,       // on this machine, by this process
  drawn,          // at random, or the first that was free
};

constexpr std::string_view name(Origin origin) {
  constexpr std::string_view names[] = {"default", "device string", "option",   "environment",
                                        "system",  "driver",        "measured", "drawn"};
  return origin <= Origin::drawn ? names[static_cast<size_t>(origin)] : "unknown";
}

// One value that a device works with, and why it is what it is: for people, and for tools that show
// it. A driver's option is named DRIVER.OPTION; what follows from options and medium has no dot.
struct Setting {
  std::string name;
  std::string value;  // as people write it, with its unit
  Origin origin = Origin::by_default;
  std::string source = {};   // more of the origin: which interface, variable or limit; or empty
  std::string meaning = {};  // of the name
};

using SettingList = std::vector<Setting>;

// In the place of what had its name, or at the end.
URMA_API void set(SettingList& settings, Setting setting);

// As people write them, and as device strings take them: "64K", "1.5us", "5%", "yes".
URMA_API std::string size_text(uint64_t bytes);
URMA_API std::string duration_text(Duration duration);
URMA_API std::string fraction_text(double fraction);
inline std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace urma
