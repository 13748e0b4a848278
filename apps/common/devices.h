// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/urma.hpp"

namespace urma::apps {

// Returns the device that the user chose by URMA_DEVICE or the configuration file, if any. Throws a
// Failure if one of these is invalid.
std::optional<std::string> chosen_device();

// The same with its origin: `source` is the variable, or FILE:LINE.
std::optional<Setting> chosen_device_setting();

// Returns the device that the user chose, or else the device string with which a client reaches the
// server at `host`: the window for "localhost" and for addresses in a window; otherwise the address
// from which this host talks to `host`. For an address of this host it has any free port
// (udp:127.0.0.1:0), because port 4792 belongs to the server, whichever side starts first. If no
// device string can be found, the import of the host's name reports why.
std::string device_towards(const std::string& host);

// The devices that a server opens: the one that the user chose, or else the window and the loopback
// first, then each address by which other machines may know this one. Link-local addresses are left
// out.
std::vector<std::string> devices_of_this_host();

}  // namespace urma::apps
