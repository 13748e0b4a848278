// SPDX-License-Identifier: Apache-2.0
#include "engine/device_paths.h"

namespace urma::engine {

DevicePaths::DevicePaths(Engine& engine, ControlCalls& calls, const drivers::PortFacts& facts,
                         drivers::VirtualClock* clock, drivers::VirtualClock::Driven& driven)
    : engine_(engine),
      calls_(calls),
      clock_(clock),
      driven_(driven),
      endpoints_(facts.paths.empty() ? std::vector{facts.self} : facts.paths) {
  if (clock_ == nullptr) return;
  clock_->attach(driven_, facts.self);
  for (const Endpoint& path : facts.paths) {
    if (!(path == facts.self)) clock_->attach(driven_, path);
  }
}

std::vector<Endpoint> DevicePaths::endpoints() const {
  const std::lock_guard lock(mutex_);
  return endpoints_;
}

void DevicePaths::note() {
  PathList paths;
  calls_.call([&](Engine& engine, Time) {
    paths = engine.transport().paths();
    return true;
  });
  std::vector<Endpoint> endpoints;
  for (unsigned i = 0; i < paths.count; ++i) {
    if (paths.there(i)) endpoints.push_back(paths.endpoints[i]);
  }
  const std::lock_guard lock(mutex_);
  endpoints_.swap(endpoints);
}

Result<Endpoint> DevicePaths::add(std::string_view device) {
  const std::lock_guard lock(changing_);
  drivers::PathPorts* const ports = engine_.port().path_ports();
  if (ports == nullptr) {
    return Error{Status::unsupported,
                 "add_path: this device was opened with one path. Fix: open paths():DEVICE+DEVICE, "
                 "not within fault() or pcap()"};
  }
  auto joining = ports->prepare(device);
  if (!joining) return Error{joining.status(), "add_path: " + joining.error().message};
  const Endpoint endpoint = (*joining)->self();
  if (clock_ != nullptr) clock_->attach(driven_, endpoint);
  bool added = false;
  calls_.call([&](Engine& engine, Time now) {
    added = engine.path_changes().add(**joining, now);
    return true;
  });
  if (!added) {
    return Error{Status::no_resources,
                 "add_path: this device has eight paths, which is the limit. Fix: remove one of "
                 "them first (Device::remove_path)"};
  }
  note();
  return endpoint;
}

Result<void> DevicePaths::remove(const Endpoint& endpoint) {
  const std::lock_guard lock(changing_);
  using Found = PathChanges::Removal::Found;
  PathChanges::Removal removal;
  removal.endpoint = endpoint;
  const bool several = engine_.port().path_ports() != nullptr;
  if (several) {
    calls_.call(
        [&](Engine& engine, Time now) { return engine.path_changes().remove(removal, now); });
  }
  if (!several || removal.found == Found::last) {
    return Error{Status::invalid_argument,
                 "remove_path: " + to_string(endpoint) +
                     " is the last path, without which no peer reaches this device. Fix: add "
                     "another path first (Device::add_path), or close the device"};
  }
  if (removal.found == Found::nowhere) {
    return Error{Status::invalid_argument, "remove_path: this device is not reached at " +
                                               to_string(endpoint) +
                                               ". Fix: give one of Device::endpoints"};
  }
  note();
  return {};
}

}  // namespace urma::engine
