#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "urma/urma.hpp"

namespace urma::apps {

// The device that reaches a server there: the window for "localhost" and for addresses in it, else
// the one on the address from which this machine talks to the host; for an address of this host
// any free port there (udp:127.0.0.1:0), because port 4792 is the server's, whichever starts first.
// If that cannot be found out, the import of the host's name says why.
std::string device_towards(const std::string& host);

// The devices that a server opens: the window and the loopback first, then each address by which
// other machines may know this one. Link-local addresses are left out.
std::vector<std::string> devices_of_this_host();

}  // namespace urma::apps
