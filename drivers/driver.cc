// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"

#include <algorithm>

namespace urma::drivers {
namespace {

FormInfo describe(const Driver& driver, const Driver::Form& form) {
  FormInfo out{.text = std::string(form.text),
               .meaning = std::string(form.meaning),
               .example = std::string(form.example),
               .wraps = form.wraps,
               .options = {}};
  // No option is given, so the reader notes each option with its default.
  DeviceString nothing;
  nothing.name = driver.name;
  OptionReader reader(nothing);
  form.options(reader);
  for (const OptionReader::Row& row : reader.rows()) {
    out.options.push_back(
        {.key = row.key, .values = row.expected, .by_default = row.value, .meaning = row.meaning});
  }
  return out;
}

// Returns whether a wrapper has an address in its parentheses.
bool takes_address(const Driver& driver) {
  return std::any_of(driver.forms.begin(), driver.forms.end(),
                     [](const Driver::Form& form) { return form.addressed; });
}

}  // namespace

std::vector<DriverInfo> describe_drivers() {
  std::vector<DriverInfo> out;
  for (const Driver* driver : all_drivers()) {
    out.push_back(
        {.name = std::string(driver->name), .summary = std::string(driver->summary), .forms = {}});
    for (const Driver::Form& form : driver->forms) {
      out.back().forms.push_back(describe(*driver, form));
    }
  }
  return out;
}

Result<std::unique_ptr<PacketPort>> open_port(const DeviceString& device) {
  std::string names;
  for (const Driver* driver : all_drivers()) {
    if (driver->name == device.name) {
      const bool in_parentheses = device.inner != nullptr && !device.address.empty();
      if (!in_parentheses || takes_address(*driver)) return driver->open(device);
      return device_error(device, device.address_offset,
                          device.name + " has no address of its own. Fix: leave it out, or write " +
                              "OPTION=VALUE there");
    }
    names += names.empty() ? "" : ", ";
    names += driver->name;
  }
  return device_error(device, device.offset,
                      "there is no driver of this name in this build; it has: " + names);
}

}  // namespace urma::drivers
