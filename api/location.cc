// SPDX-License-Identifier: Apache-2.0
#include "api/location.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/failed.h"
#include "base/socket_address.h"
#include "engine/name_files.h"

namespace urma {
namespace {

constexpr std::string_view scheme = "urma://";

Error bad_location(std::string_view what, std::string_view why) {
  return failed(Status::invalid_argument, "\"", what.substr(0, 120), "\" ", why)
      .fix("urma://localhost/NAME, urma://ADDRESS/NAME or urma://ADDRESS:PORT/NAME");
}

// Returns the address of a host, from the system's resolver.
Result<Eid> resolve(const std::string& host, bool v4) {
  addrinfo hints{};
  hints.ai_family = v4 ? AF_INET : AF_INET6;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int why = getaddrinfo(host.c_str(), nullptr, &hints, &found); why != 0) {
    return failed(Status::not_found, "the host \"", host, "\" is not known: ", gai_strerror(why))
        .fix("check its spelling, or write its address (", v4 ? "IPv4" : "IPv6",
             ", as this device has)");
  }
  const Eid eid = from_sockaddr(*found->ai_addr).address;
  freeaddrinfo(found);
  return eid;
}

}  // namespace

bool is_location(std::string_view what) { return what.starts_with(scheme); }

Result<Location> parse_location(std::string_view what, const Endpoint& self) {
  std::string_view rest = what.substr(scheme.size());
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return bad_location(what, "has no /NAME");
  Location out;
  out.host = rest.substr(0, slash);
  out.name = rest.substr(slash + 1);
  if (!engine::valid_name(out.name)) {
    return bad_location(what, "has an invalid name: a name is 1 to 64 of A-Z a-z 0-9 . _ -");
  }
  if (out.host == "localhost") {
    out.local_host = true;
    return out;
  }
  if (Result<Endpoint> numeric = parse_endpoint(out.host)) {
    out.at = *numeric;
    const bool bracket = out.host.starts_with('[');
    out.port_given = bracket ? out.host.find("]:") != std::string::npos
                             : std::count(out.host.begin(), out.host.end(), ':') == 1;
    return out;
  }
  const size_t colon = out.host.rfind(':');
  const std::string name = out.host.substr(0, colon);
  if (name.empty()) return bad_location(what, "has no host");
  if (colon != std::string::npos) {
    // parse_endpoint checks the port.
    Result<Endpoint> port = parse_endpoint("0.0.0.0" + out.host.substr(colon));
    if (!port) return bad_location(what, "has no valid port");
    out.at.port = port->port;
    out.port_given = true;
  } else {
    out.at.port = ub_port;
  }
  if (in_window(self.address)) {
    return failed(Status::invalid_argument, "\"", name,
                  "\" is another host, and this device is in a window of shared memory")
        .fix("open udp: to reach it, or import urma://localhost/", out.name,
             " from the same window");
  }
  Result<Eid> address = resolve(name, self.is_ipv4());
  if (!address) return address.error();
  out.at.address = *address;
  return out;
}

Error out_of_reach(const Endpoint& at, const Endpoint& self) {
  const std::string cure = in_window(at.address) ? "cxl:, or cxl:PATH of the window of this address"
                           : at.is_ipv4()        ? "udp:"
                                                 : "udp:[ADDRESS], an IPv6 address of this host";
  return failed(Status::invalid_argument, "import: ", at, " cannot be reached from a device on ",
                self)
      .fix("open ", cure);
}

}  // namespace urma
