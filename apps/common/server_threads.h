// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/devices.h"
#include "apps/common/failure.h"

namespace urma::apps {

// Makes one server for each named device, or if none is named for each of `devices_of_this_host`,
// and returns those that could be made. `make` takes a device string and throws a Failure. If a
// server cannot be made, the program ends only if its device was named or there is no other server:
// its address may belong to another server, or may not be ready yet. Otherwise `complain` gets a
// line that says why.
template <class Make, class Complain>
auto make_servers(std::span<const std::string> named, Make make, Complain complain) {
  std::vector<decltype(make(std::string()))> servers;
  std::optional<Failure> first;
  std::vector<std::string> without;
  const auto devices =
      named.empty() ? devices_of_this_host() : std::vector<std::string>(named.begin(), named.end());
  for (const std::string& device : devices) {
    try {
      servers.push_back(make(device));
    } catch (const Failure& failure) {
      if (!named.empty()) throw;
      if (!first) first = failure;
      without.push_back("without " + device + ": " + failure.what());
    }
  }
  if (servers.empty()) throw *first;
  for (const std::string& line : without) complain(line);
  return servers;
}

// Runs each body on a thread of its own, the first one on the caller's thread, until all have
// returned. The first body that ends, by an exception or not, sets `over`, which the others check.
// Afterwards the exception of the first body, in their order, that threw one is thrown again.
void run_together(std::span<const std::function<void()>> bodies, std::atomic<bool>& over);

}  // namespace urma::apps
