// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace urma {

// An option of a device string: KEY=VALUE. All texts are for people.
struct OptionInfo {
  std::string key;         // its name: "mtu"
  std::string values;      // the valid values: "yes or no"
  std::string by_default;  // the value if the option is left out
  std::string meaning;     // what it sets
};

// One way to write a device string of a driver.
struct FormInfo {
  std::string text;     // "udp:ADDRESS:PORT"; the words in capitals are placeholders
  std::string meaning;  // what the placeholders mean, and their defaults
  std::string example;  // a device string that can be opened on most machines
  bool wraps = false;   // whether it modifies another device, as in "fault(loss=5%):udp:"
  std::vector<OptionInfo> options;  // those that device strings of this form accept
};

// A driver that is built into this library.
struct DriverInfo {
  std::string name;             // with which its device strings begin: "udp"
  std::string summary;          // what it reaches, and how
  std::vector<FormInfo> forms;  // the ways to write its device strings
};

}  // namespace urma
