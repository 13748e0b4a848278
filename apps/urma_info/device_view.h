#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "urma/urma.hpp"

namespace urma::info {

// One thing that a device can or cannot do: a name for programs, yes or no, and for people what it
// means on this device.
struct Ability {
  std::string name;
  bool able = false;
  std::string what;
};

// One device string, opened for a moment, and what it said.
struct DeviceView {
  std::string text;
  std::optional<Error> error;  // then there is nothing else
  std::string description;
  std::string reach;  // the peers that it reaches
  std::vector<Ability> abilities;
  SettingList settings;
};

// `measure`: also what a device measures only when it is first needed; takes memory for a moment.
DeviceView view_device(const std::string& text, bool measure = false);

// Everything but the settings.
nlohmann::json to_json(const DeviceView& view);
nlohmann::json to_json(const SettingList& settings);
// The lines below a device's name.
std::string to_text(const DeviceView& view);
// A line for each setting; `meanings`: and one more with what it means.
std::string to_text(const SettingList& settings, bool meanings);

}  // namespace urma::info
