// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/common/failure.h"
#include "urma/urma.hpp"

namespace urma::apps {

// Reports which packets are missing in the captures (`pcap(...)`) of a program's devices. A capture
// is complete or not only once its device has closed. So an object of this class is declared before
// the devices: it is destroyed after them, and then reads how each capture file ends.
class Captures {
 public:
  // `program` begins each message.
  explicit Captures(std::string program) : program_(std::move(program)) {}
  ~Captures();
  Captures(const Captures&) = delete;
  Captures& operator=(const Captures&) = delete;

  // Remembers the files to which the device writes captures. Returns the device.
  Device watch(Device device);

 private:
  std::string program_;
  std::vector<Setting> files_;
};

// Returns what is missing in a closed capture file, which a setting of its device names: how many
// packets, why, and the fix. Empty if the file is complete, or if it is not a regular file.
std::string what_capture_lacks(const Setting& setting);

// From now on `exit_with_captures` reports that a capture lacks packets. Called for captures of
// other processes.
void note_incomplete_capture();

// Returns the exit code of the program: `ok` becomes `capture_incomplete` if any capture lacks
// packets. Called after all devices have closed.
Exit exit_with_captures(Exit exit);

}  // namespace urma::apps
