// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace urma {

// A congestion control of this library, and what a device makes of it when it is asked for by
// DeviceOptions::congestion. All texts but the names are for people.
struct CongestionChoice {
  std::string name;          // as DeviceOptions::congestion and `--cc` accept it
  std::string summary = {};  // what it controls, and by which signals
  // The one that the device's channels use, if their peers report what that needs; "none" if the
  // medium loses nothing.
  std::string used = {};
  std::string why = {};  // why it is not the one that was asked for; empty if it is
};

}  // namespace urma
