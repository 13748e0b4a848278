// SPDX-License-Identifier: Apache-2.0
#include "urma/core/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace urma {
namespace {

Error bad_endpoint(std::string_view text, std::string_view why) {
  std::string message(1, '"');
  message.append(text).append("\" ").append(why);
  return {Status::invalid_argument, message};
}

Result<uint16_t> parse_port(std::string_view text, std::string_view whole) {
  uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failure != std::errc{} || end != text.data() + text.size() || port == 0) {
    return bad_endpoint(whole,
                        "has no valid port after the colon. Fix: write a number from 1 to 65535");
  }
  return port;
}

}  // namespace

bool may_reach(const Eid& from, const Eid& to) {
  constexpr size_t window_bytes = sizeof window_prefix + sizeof(uint64_t);
  if (in_window(from) || in_window(to)) {
    return std::memcmp(from.bytes.data(), to.bytes.data(), window_bytes) == 0;
  }
  if (is_switched(from) || is_switched(to)) return is_switched(from) && is_switched(to);
  return Endpoint{from, 0}.is_ipv4() == Endpoint{to, 0}.is_ipv4();
}

Eid ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  Eid eid;
  std::memcpy(eid.bytes.data(), Endpoint::mapped_prefix, sizeof Endpoint::mapped_prefix);
  eid.bytes[12] = std::byte{a}, eid.bytes[13] = std::byte{b};
  eid.bytes[14] = std::byte{c}, eid.bytes[15] = std::byte{d};
  return eid;
}

std::string to_string(const Eid& address) {
  char text[INET6_ADDRSTRLEN];
  const bool v4 = Endpoint{address, 0}.is_ipv4();
  inet_ntop(v4 ? AF_INET : AF_INET6, address.bytes.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

std::string to_string(const Endpoint& endpoint) {
  const std::string host = to_string(endpoint.address);
  const std::string port = ':' + std::to_string(endpoint.port);
  return endpoint.is_ipv4() ? host + port : '[' + host + ']' + port;
}

Result<Eid> parse_address(std::string_view text) {
  const std::string terminated(text);
  Eid eid = ipv4(0, 0, 0, 0);
  // inet_pton would ignore everything after a zero byte.
  const bool whole = text.find('\0') == text.npos;
  if (whole && inet_pton(AF_INET, terminated.c_str(), eid.bytes.data() + 12) == 1) return eid;
  if (whole && inet_pton(AF_INET6, terminated.c_str(), eid.bytes.data()) == 1) return eid;
  return bad_endpoint(text, "is not an IPv4 or IPv6 address. Fix: write it like 127.0.0.1 or ::1");
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == text.npos)
      return bad_endpoint(
          text, "lacks the closing bracket of its address. Fix: write it like [::1]:4792");
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    if (!port.empty() && port.front() != ':') {
      return bad_endpoint(
          text, "only :PORT may follow the closing bracket. Fix: write it like [::1]:4792");
    }
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':'));
  }
  Result<Eid> address = parse_address(host);
  if (!address) return address.error();
  if (port.empty()) return Endpoint{*address, ub_port};
  Result<uint16_t> number = parse_port(port.substr(1), text);
  if (!number) return number.error();
  return Endpoint{*address, *number};
}

}  // namespace urma
