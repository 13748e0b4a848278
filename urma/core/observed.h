#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/time.h"

namespace urma {

// A metric of a device of another process, as that process's version of this library describes it.
struct ObservedMetric {
  std::string name;
  std::string unit;
  std::string window;  // "since open" or "now"
  std::string part;
  std::string meaning;
  uint64_t value = 0;
};

// An open device, seen from outside. Texts are printable ASCII, whatever their process put there.
struct ObservedDevice {
  uint64_t pid = 0;             // as its process knows it: in a container, the container's
  std::string process;          // its program's name, as it was started
  int64_t process_started = 0;  // seconds since 1970
  int64_t opened = 0;           // seconds since 1970
  std::string device;           // the device string
  std::string description;
  std::string endpoint;
  std::string eid;
  std::vector<ObservedMetric> metrics;  // all of one moment
  uint64_t reports = 0;                 // how often they have been reported
  Time moment{};  // of the last time, by the monotonic clock; idle devices report nothing

  // Null: its version has no such metric.
  const uint64_t* find(std::string_view name) const {
    for (const ObservedMetric& metric : metrics) {
      if (metric.name == name) return &metric.value;
    }
    return nullptr;
  }
};

struct Observed {
  std::vector<ObservedDevice> devices;  // by process, the oldest device first
  std::vector<std::string> skipped;     // what could not be read, why, and the fix: sentences
};

}  // namespace urma
