// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "urma/urma.hpp"

namespace urma::umdk {

// The name under which a Jetty, JFR or group is published whose number does not tell its process
// (docs/porting-from-umdk.md).
class JettyName {
 public:
  explicit JettyName(JettyId id) {
    std::snprintf(text_, sizeof text_, "umdk.jetty-%u", static_cast<unsigned>(number(id)));
  }
  operator std::string_view() const { return text_; }
  // Returns where a device in a window finds it.
  std::string in_window() const { return std::string("urma://localhost/") + text_; }

 private:
  char text_[24];
};

// Publishes an object of a device in a window, unless another process there has published the name:
// each has an address of its own, so several could. One that finds that it is not the only one
// withdraws its own. Returns whether it is the only one. Errors: those of Device::publish.
template <class Object>
Result<bool> publish_alone(urma::Device& device, const JettyName& name, const Object& object,
                           const Audience& audience = this_user()) {
  const std::string here = name.in_window();
  if (device.import(here, Duration{}).status() != Status::not_found) return false;
  const auto published = device.publish(name, object, audience);
  if (published.status() == Status::address_in_use) return false;
  if (!published) return published.error();
  if (device.import(here, Duration{})) return true;
  (void)device.unpublish(name);
  return false;
}

}  // namespace urma::umdk
