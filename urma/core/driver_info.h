#pragma once

#include <string>
#include <vector>

namespace urma {

// An option of a device string: KEY=VALUE.
struct OptionInfo {
  std::string key;
  std::string values;      // what it may be: "yes or no"
  std::string by_default;  // what it is when left out
  std::string meaning;
};

// One way to write a device string of a driver.
struct FormInfo {
  std::string text;     // "udp:ADDRESS:PORT"; what stands in capitals is to be filled in
  std::string meaning;  // of these words, and what is left out when they are
  std::string example;  // one that can be opened as it stands on most machines
  bool wraps = false;   // it changes another device: "fault(loss=5%):udp:"
  std::vector<OptionInfo> options;
};

// A driver that is built into this library.
struct DriverInfo {
  std::string name;
  std::string summary;
  std::vector<FormInfo> forms;
};

}  // namespace urma
