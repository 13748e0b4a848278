// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "urma/urma.hpp"

namespace urma::apps::info {

// One thing that a device can or cannot do: a name for programs, whether it can, and a text that
// says what this means for the device.
struct Ability {
  std::string name;
  bool able = false;
  std::string what;
};

// One device string, and the properties of the device, which was opened only to ask for them.
struct DeviceView {
  std::string text;
  std::optional<Error> error;  // if set, the other members are empty
  std::string description;
  std::string reach;  // which peers the device reaches
  std::vector<Ability> abilities;
  std::vector<CongestionChoice> congestion;
  SettingList settings;
};

// `measure`: also includes what a device measures only when it first needs it. That takes memory
// for a moment.
DeviceView view_device(const std::string& text, bool measure = false);

// Contains everything except the settings.
nlohmann::json to_json(const DeviceView& view);
nlohmann::json to_json(const SettingList& settings);
// Returns the lines that are printed below a device's name.
std::string to_text(const DeviceView& view);
// Returns lines about what the packets carry, and for each congestion control the one that is used
// if that is asked for. Empty if the device could not be opened.
std::string congestion_text(const DeviceView& view);
// Returns a line for each setting, and with `meanings` a second one that explains it.
std::string to_text(const SettingList& settings, bool meanings);

}  // namespace urma::apps::info
