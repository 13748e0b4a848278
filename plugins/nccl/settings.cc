// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/settings.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "plugins/nccl/log.h"

namespace urma::nccl {
namespace {

constexpr int usual_timeout_ms = 1000;
constexpr int most_seconds = 3600;
constexpr int least_timeout_ms = 100;
constexpr int most_speed_mbps = 10'000'000;
constexpr int usual_stage_mib = 4;  // NCCL_BUFFSIZE, all of which may be outstanding
constexpr int most_stage_mib = 1024;
// With fewer, those of NCCL, the GPU's driver and the application need them.
constexpr unsigned least_processors_of_copier = 4;
constexpr std::string_view udp = "udp:";
constexpr size_t most_shown = 80;  // bytes of a name or value in a message

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<double> parse_number(std::string_view text, double least, double most) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc{} && end == text.data() + text.size();
  if (!whole || !(value >= least && value <= most)) return std::nullopt;
  return value;
}

Error bad_variable(const char* name, std::string_view value, const char* fix) {
  return {Status::invalid_argument, std::string(name) + " is \"" +
                                        std::string(value.substr(0, most_shown)) +
                                        "\", which is not such a number. Fix: " + fix};
}

struct FreeAddresses {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

// Returns the address as text, in brackets if it is an IPv6 address. Link-local addresses need a
// scope, which device strings do not have.
std::optional<std::string> text_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return std::nullopt;
  return "[" + std::string(inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text)) + "]";
}

// A misspelled name would be ignored silently.
void report_unknown_variables() {
  constexpr std::string_view prefix = "URMA_NCCL_";
  constexpr std::string_view known[] = {"DEVICE", "TIMEOUT", "SPEED", "STAGE", "COPIER"};
  for (const char* const* one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view all = *one;
    if (!all.starts_with(prefix)) continue;
    const std::string_view name = all.substr(0, std::min(all.find('='), most_shown));
    if (std::ranges::find(known, name.substr(prefix.size())) != std::end(known)) continue;
    warn(
        "the variable %s has no effect. Fix: choose one of URMA_NCCL_DEVICE, _TIMEOUT, _SPEED, "
        "_STAGE and _COPIER",
        std::string(name).c_str());
  }
}

}  // namespace

Result<Settings> read_settings() {
  report_unknown_variables();
  Settings out;
  out.device = variable("URMA_NCCL_DEVICE");
  out.timeout = std::chrono::milliseconds(usual_timeout_ms);
  if (const auto text = variable("URMA_NCCL_TIMEOUT"); !text.empty()) {
    const auto seconds = parse_number(text, least_timeout_ms / 1000.0, most_seconds);
    if (!seconds) {
      return bad_variable("URMA_NCCL_TIMEOUT", text, "seconds from 0.1 to 3600, such as 1.5");
    }
    out.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
  }
  if (const auto text = variable("URMA_NCCL_SPEED"); !text.empty()) {
    const auto mbps = parse_number(text, 1, most_speed_mbps);
    if (!mbps) {
      return bad_variable("URMA_NCCL_SPEED", text, "Mb/s from 1 to 10000000, such as 100000");
    }
    out.speed_mbps = static_cast<int>(*mbps);
  }
  out.stage_bytes = size_t{usual_stage_mib} << 20;
  if (const auto text = variable("URMA_NCCL_STAGE"); !text.empty()) {
    const auto mib = parse_number(text, 0, most_stage_mib);
    if (!mib) return bad_variable("URMA_NCCL_STAGE", text, "MiB from 0 to 1024, such as 4");
    out.stage_bytes = static_cast<size_t>(*mib) << 20;
  }
  out.copier = std::thread::hardware_concurrency() >= least_processors_of_copier;
  if (const auto text = variable("URMA_NCCL_COPIER"); !text.empty()) {
    const auto chosen = parse_number(text, 0, 1);
    if (!chosen) return bad_variable("URMA_NCCL_COPIER", text, "0 or 1");
    out.copier = *chosen != 0;
  }
  return out;
}

Result<std::string> with_address(const std::string& device) {
  if (!device.starts_with(udp)) return device;
  const std::string rest = device.substr(udp.size());
  const std::string name = rest.substr(0, rest.find('?'));
  if (name.empty() || if_nametoindex(name.c_str()) == 0) return device;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) found = nullptr;
  const std::unique_ptr<ifaddrs, FreeAddresses> list(found);
  // IPv4 addresses come first, because hosts that have both usually route them.
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      if (name != one->ifa_name) continue;
      if (const auto text = text_of(*one->ifa_addr)) {
        return std::string(udp) + *text + rest.substr(name.size());
      }
    }
  }
  return Error{Status::not_found, "URMA_NCCL_DEVICE is \"" + device +
                                      "\", and this interface has no IP address. Fix: "
                                      "name another interface; `ip address` lists them"};
}

}  // namespace urma::nccl
