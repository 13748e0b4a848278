// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "urma/urma.hpp"

namespace urma::apps::info {

// A device that is opened only to ask for its properties. Its window is not created if it does not
// exist: the device gets another one instead, whose file has no name any more.
class Look {
 public:
  explicit Look(const std::string& text);

  Result<Device>& device() { return device_; }
  // Return the texts of the device as if it had the window that does not exist.
  std::string description() const;
  Result<SettingList> settings();

 private:
  std::string named(std::string text) const;

  std::string text_;
  std::string window_;       // the path of the window that does not exist; or empty
  std::string stand_in_;     // that of the other one
  bool by_default_ = false;  // the device string leaves the window to the driver
  Result<Device> device_;
};

}  // namespace urma::apps::info
