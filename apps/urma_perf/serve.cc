#include "apps/urma_perf/serve.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "apps/urma_perf/server.h"

namespace urma::perf {
namespace {

// The device on an interface's address; empty if it is none for others, or the IPv4 loopback, of
// which one is taken that is free.
std::string device_on(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const in_addr v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    const uint32_t host = ntohl(v4.s_addr);
    constexpr uint32_t link_local = 0xa9fe;  // 169.254/16
    if (host >> 24 == IN_LOOPBACKNET || host >> 16 == link_local) return {};
    inet_ntop(AF_INET, &v4, text, sizeof text);
    return fmt::format("udp:{}", text);
  }
  if (address.sa_family == AF_INET6) {
    const in6_addr v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&v6)) return {};
    inet_ntop(AF_INET6, &v6, text, sizeof text);
    return fmt::format("udp:[{}]", text);
  }
  return {};
}

// Servers that could be made. One that could not matters only if it is the only one: its address
// may be another server's, or not be ready yet.
std::vector<std::unique_ptr<Server>> make_servers(const Options& options, std::atomic<bool>& over) {
  const bool named = !options.device.empty();
  const auto devices = named ? std::vector{options.device} : devices_of_this_host();
  std::vector<std::unique_ptr<Server>> servers;
  std::optional<Failure> first;
  for (const std::string& device : devices) {
    try {
      servers.push_back(std::make_unique<Server>(options, device, over));
    } catch (const Failure& failure) {
      if (!first) first = failure;
      if (options.verbose) fmt::print(stderr, "without {}: {}\n", device, failure.what());
    }
  }
  if (servers.empty()) throw *first;
  return servers;
}

}  // namespace

std::vector<std::string> devices_of_this_host() {
  std::vector<std::string> devices = {"udp:"};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return devices;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    std::string device = device_on(*one->ifa_addr);
    const bool seen = std::ranges::find(devices, device) != devices.end();
    if (!device.empty() && !seen) devices.push_back(std::move(device));
  }
  freeifaddrs(all);
  return devices;
}

Exit serve(const Options& options) {
  std::atomic<bool> over{false};
  const auto servers = make_servers(options, over);
  // Whoever starts us reads one line; people read them all.
  for (const auto& server : servers) {
    server->say_where();
    if (options.report_to) break;
  }
  std::vector<std::exception_ptr> failed(servers.size());
  const auto run = [&](size_t i) {
    try {
      servers[i]->run();
    } catch (const std::exception&) {
      failed[i] = std::current_exception();
    }
    over = true;
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < servers.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& why : failed) {
    if (why) std::rethrow_exception(why);
  }
  return Exit::ok;
}

}  // namespace urma::perf
