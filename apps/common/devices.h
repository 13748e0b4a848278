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

// Where a server is to be found: the window and the loopback first, then each address that other
// machines may know this one by. What is only good on one link is none of them.
std::vector<std::string> devices_of_this_host();

}  // namespace urma::apps
