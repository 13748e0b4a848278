#pragma once

#include <string>
#include <vector>

#include "apps/common/failure.h"
#include "urma/urma.hpp"

namespace urma::apps {

// Says what the captures (`pcap(...)`) of a program's devices lack. A capture is whole or not only
// when its device has closed, so an object of this class is declared before the devices: it is
// destroyed after them, and then reads how each capture file ends.
class Captures {
 public:
  // `program` begins each message.
  explicit Captures(std::string program) : program_(std::move(program)) {}
  ~Captures();
  Captures(const Captures&) = delete;
  Captures& operator=(const Captures&) = delete;

  // Remembers the files that the device's captures are written to. Returns the device.
  Device watch(Device device);

 private:
  std::string program_;
  std::vector<std::string> files_;
};

// Returns what a closed capture file lacks: how many packets, why, and the fix. Empty if it is
// complete, or if it is not a regular file.
std::string what_capture_lacks(const std::string& file);

// From now on `exit_with_captures` says that a capture lacks packets. For those of other processes.
void note_incomplete_capture();

// How the program ends: `ok` becomes `capture_incomplete` if any capture lacked packets. Called
// after all devices have closed.
Exit exit_with_captures(Exit exit);

}  // namespace urma::apps
