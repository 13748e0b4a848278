// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "drivers/device_string.h"
#include "drivers/packet_port.h"
#include "urma/core/driver_info.h"
#include "urma/core/result.h"

namespace urma::drivers {

// A kind of port. To add one, write a folder with a `Driver`, and `urma_driver(<name>)` in CMake.
struct Driver {
  std::string_view name;
  std::string_view summary;
  // Pairs of device strings whose devices reach each other, for the conformance suite.
  using Pair = std::array<std::string_view, 2>;
  std::span<const Pair> pairs;
  Result<std::unique_ptr<PacketPort>> (*open)(const DeviceString& device);
  // One way to write the driver's device strings (FormInfo). `options` asks the reader for each
  // option of the form, as `open` does.
  struct Form {
    std::string_view text;
    std::string_view meaning;
    std::string_view example;
    void (*options)(OptionReader& reader);
    bool wraps = false;
    bool addressed = false;  // a wrapper with an address in its parentheses
  };
  std::span<const Form> forms = {};
};

// Returns all drivers in this build.
std::span<const Driver* const> all_drivers();
// Returns the descriptions of all drivers, for list_drivers. Opens no port.
std::vector<DriverInfo> describe_drivers();
// Opens the port of a parsed device string, wrappers included. Errors: those of urma::open.
Result<std::unique_ptr<PacketPort>> open_port(const DeviceString& device);

}  // namespace urma::drivers
