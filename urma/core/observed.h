#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/time.h"

namespace urma {

// A metric of a device of another process. The texts are from that process's version of the library
// (see Metric).
struct ObservedMetric {
  std::string name;
  std::string unit;
  std::string window;  // "since open" or "now"
  std::string part;
  std::string meaning;
  uint64_t value = 0;
};

// An open device of any process of this user. Texts contain only printable ASCII, whatever that
// process wrote.
struct ObservedDevice {
  uint64_t pid = 0;                     // in the PID namespace of that process (its container)
  std::string process;                  // the name of its program
  int64_t process_started = 0;          // seconds since 1970
  int64_t opened = 0;                   // seconds since 1970
  std::string device;                   // the device string
  std::string description;              // as Device::description
  std::string endpoint;                 // "127.0.0.1:4792"
  std::string eid;                      // "127.0.0.1"
  std::vector<ObservedMetric> metrics;  // all taken at the same moment
  uint64_t reports = 0;                 // the number of reports so far; an idle device makes none
  Time moment{};                        // the time of the last report, of the monotonic clock

  // Returns the value of a metric, or null if the version of that process does not have this
  // metric.
  const uint64_t* find(std::string_view name) const {
    for (const ObservedMetric& metric : metrics) {
      if (metric.name == name) return &metric.value;
    }
    return nullptr;
  }
};

struct Observed {
  std::vector<ObservedDevice> devices;  // sorted by process, then by age, the oldest first
  std::vector<std::string> skipped;  // a sentence for each page that could not be read, with a fix
};

}  // namespace urma
