// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "apps/urma_switch/loop.h"
#include "tests/drivers/ports.h"

namespace urma::test {

// A switch on the loopback interface, run by a thread of its own as urma_switch runs it.
class RunningSwitch {
 public:
  static constexpr uint64_t bytes_per_second = 1'250'000'000;  // of each port

  explicit RunningSwitch(const std::string& device = "udp:127.0.0.1:0?ecn=yes",
                         std::string_view meter = "caqm_r")
      : port_(PortPair::open(device)),
        ports_{port_.get()},
        loop_(ports_, settings(meter)),
        thread_([this] { loop_.run([this] { return stopped_.load(); }, -1); }) {}
  ~RunningSwitch() {
    stopped_ = true;
    thread_.join();
  }

  Endpoint at() const { return port_->facts().self; }
  // The socket at that address.
  int socket() const { return port_->descriptors()[0]; }
  // Returns the device string of a device that attaches to the switch.
  std::string device(const std::string& options = "") const {
    const std::string at = to_string(this->at());
    return "link(" + at + (options.empty() ? "" : "," + options) + "):udp:127.0.0.1:0?ecn=yes";
  }

 private:
  static apps::switches::Forwarder::Settings settings(std::string_view meter) {
    return {.hosts = {.ports = 16, .key = {1, 2}},
            .fabric = {.packets = 4096, .buffer_bytes = 16 << 20, .meter = meter},
            .port = {.bytes_per_second = bytes_per_second, .host = true}};
  }

  std::unique_ptr<drivers::PacketPort> port_;
  const std::vector<drivers::PacketPort*> ports_;
  apps::switches::Loop loop_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace urma::test
