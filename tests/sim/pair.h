// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/sim/network.h"
#include "tests/bytes.h"
#include "tests/catch.h"
#include "tests/descriptor.h"
#include "urma/urma.hpp"

namespace urma::test {

// How a host is started.
struct HostOptions {
  std::string network{};  // options of the device string
  std::string text{};     // a whole device string, instead of one with these options
  JettyOptions jetty{.berths = 64, .receives = 16};
  DeviceOptions device{};
};

// Hosts on one simulated network, for scenarios with chosen events.
class SimHosts {
 public:
  struct Host {
    std::vector<std::byte> memory;  // of the segment
    Device device;
    Segment segment;
    Jetty jetty;
    std::string line;  // the descriptor of the segment and the Jetty
  };

  explicit SimHosts(const std::string& name, uint64_t seed = 1)
      : name_(name), network_(drivers::sim::Network::named(name, seed)) {}

  // Starts a host. `options` are those of its device string: "address=fd00::9&loss=1%".
  Host start(const std::string& options = "",
             const JettyOptions& jetty = {.berths = 64, .receives = 16},
             const DeviceOptions& device = {}) {
    return start_at("sim:" + name_ + (options.empty() ? "" : "?" + options), jetty, device);
  }
  Host start(const HostOptions& options) {
    return options.text.empty() ? start(options.network, options.jetty, options.device)
                                : start_at(options.text, options.jetty, options.device);
  }
  static Host start_at(const std::string& text, const JettyOptions& jetty,
                       const DeviceOptions& device) {
    Device opened = open(text, device).value();
    // The memory belongs to the application, so that all works are sent as packets.
    std::vector<std::byte> memory(1 << 20);
    Segment segment = opened.register_memory(memory).value();
    Jetty made = opened.jetty(jetty).value();
    std::string line = descriptor_of(segment, made);
    return {std::move(memory), std::move(opened), std::move(segment), std::move(made),
            std::move(line)};
  }

  // Ends the process without a goodbye to its peers.
  void kill(Host&& host) {
    for (const Endpoint& place : host.device.endpoints()) network_->kill(place);
    Host gone = std::move(host);
  }

  // Stops the process, or lets it continue.
  void stop(Host& host, bool stopped = true) { network_->stop(host.device.endpoint(), stopped); }

  drivers::sim::Network& network() { return *network_; }
  const std::shared_ptr<drivers::sim::Network>& shared_network() const { return network_; }
  Time now() const { return network_->now(); }
  void run_for(Duration time) {
    const Time until = now() + time;
    while (now() < until) network_->step(until);
  }

 private:
  std::string name_;
  std::shared_ptr<drivers::sim::Network> network_;
};

// Two hosts, and what the first one has imported of the other. A test binds all four to names:
//     auto [hosts, here, there, target] = SimPair("name of the network");
// Lambdas name what they capture of these, as in [&here = here]: clang 14 cannot do it for them.
// A scenario that needs more of a pair derives from it.
struct SimPair {
  explicit SimPair(const std::string& name, const HostOptions& first = {},
                   const HostOptions& second = {}, uint64_t seed = 1)
      : hosts(name, seed),
        here(hosts.start(first)),
        there(hosts.start(second)),
        target(here.device.import(there.line).value()) {}

  SimHosts hosts;
  SimHosts::Host here;
  SimHosts::Host there;
  Imported target;
};

// Returns the status of the one work that ends within `limit`.
inline Status only_status(Jetty& jetty, Duration limit) {
  const auto completions = jetty.wait(limit);
  REQUIRE(completions.size() == 1);
  return completions[0].status;
}
// Posts the work and returns its status. No other work may end meanwhile.
inline Status status_of(Jetty& jetty, const Work& work, Duration limit = std::chrono::seconds(5)) {
  REQUIRE(jetty.post(work) == 1);
  return only_status(jetty, limit);
}

// Returns how many of the next `count` works ended with each status.
inline std::map<Status, size_t> statuses_of(Jetty& jetty, size_t count) {
  std::map<Status, size_t> ended;
  while (count > 0) {
    const auto completions = jetty.wait(std::chrono::seconds(10));
    REQUIRE_FALSE(completions.empty());
    REQUIRE(completions.size() <= count);
    count -= completions.size();
    for (const Completion& completion : completions) ++ended[completion.status];
  }
  return ended;
}

// Returns the events that the host has reported since the last call.
inline std::vector<Event> events_of(SimHosts::Host& host) {
  std::vector<Event> all;
  std::array<Event, 8> out;
  while (const size_t count = host.device.events(out)) {
    all.insert(all.end(), out.begin(), out.begin() + static_cast<ptrdiff_t>(count));
  }
  return all;
}
inline std::vector<EventKind> kinds_of(SimHosts::Host& host) {
  std::vector<EventKind> kinds;
  for (const Event& event : events_of(host)) kinds.push_back(event.kind);
  return kinds;
}

}  // namespace urma::test
