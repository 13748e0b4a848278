// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/look.h"

#include <unistd.h>

#include <filesystem>
#include <string_view>

namespace urma::apps::info {
namespace {

// A place in a device string, and the path of the window that is named there.
struct WindowPlace {
  size_t at = std::string::npos;
  size_t bytes = 0;  // 0 if the device string leaves the choice to the driver
  std::string path;
};

// Returns where the device string names a window; `at` is npos if the device is not in a window.
WindowPlace window_in(const std::string& text) {
  constexpr std::string_view driver = "cxl:";
  const size_t found = text.rfind(driver);
  if (found == text.npos || (found > 0 && text[found - 1] != ':')) return {};
  WindowPlace out{.at = found + driver.size(), .path = {}};
  out.path = text.substr(out.at, text.find('?', out.at) - out.at);
  out.bytes = out.path.size();
  if (out.path.empty()) out.path = "/dev/shm/urma-" + std::to_string(geteuid());
  return out;
}

// The stand-in lies in the same directory, because the file system matters.
std::string stand_in_for(const std::string& path) {
  static int number = 0;
  const std::filesystem::path window(path);
  return (window.parent_path() /
          (".urma-info-" + std::to_string(getpid()) + "-" + std::to_string(++number)))
      .string();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

Error cannot_look() { return {Status::not_found, {}}; }

}  // namespace

Look::Look(const std::string& text) : text_(text), device_(cannot_look()) {
  const WindowPlace place = window_in(text);
  std::error_code failed;
  const bool stands_in = place.at != text.npos && place.path.starts_with('/') &&
                         std::filesystem::symlink_status(place.path, failed).type() ==
                             std::filesystem::file_type::not_found;
  if (!stands_in) {
    device_ = urma::open(text);
    return;
  }
  window_ = place.path;
  by_default_ = place.bytes == 0;
  stand_in_ = stand_in_for(window_);
  device_ = urma::open(std::string(text).replace(place.at, place.bytes, stand_in_));
  unlink(stand_in_.c_str());
  if (!device_) device_ = Error{device_.status(), named(device_.error().message)};
}

std::string Look::description() const {
  const std::string whole = device_->description();
  if (stand_in_.empty()) return whole;
  // It begins with the device string.
  const size_t more = stand_in_.size() - (by_default_ ? 0 : window_.size());
  return text_ + named(whole.substr(text_.size() + more));
}

Result<SettingList> Look::settings() {
  Result<SettingList> settings = device_->settings();
  if (!settings || stand_in_.empty()) return settings;
  for (Setting& setting : *settings) {
    const bool window = setting.value == stand_in_;
    setting.value = named(std::move(setting.value));
    setting.source = named(std::move(setting.source));
    if (!window) continue;
    if (by_default_) setting.origin = Origin::by_default;
    setting.source = "it does not exist; the first device makes it";
  }
  return settings;
}

std::string Look::named(std::string text) const {
  if (!stand_in_.empty()) replace_all(text, stand_in_, window_);
  return text;
}

}  // namespace urma::apps::info
