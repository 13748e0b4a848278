// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "urma/urma.hpp"

namespace urma {

// A parsed urma://HOST[:PORT]/NAME.
struct Location {
  std::string host;
  std::string name;
  bool local_host = false;  // "localhost": names of this user, at any address within reach
  bool port_given = false;
  Endpoint at;
};

// Returns whether the text is a location, and not a descriptor.
bool is_location(std::string_view what);
// Parses a location, and asks the system's resolver for the host's address if that is a name.
// `self`: the address of the device that imports. Errors: invalid_argument, not_found.
Result<Location> parse_location(std::string_view what, const Endpoint& self);
// Makes the error of an import from an address that a device at `self` cannot reach.
Error out_of_reach(const Endpoint& at, const Endpoint& self);

}  // namespace urma
