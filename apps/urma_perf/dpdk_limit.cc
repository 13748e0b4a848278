// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/dpdk_limit.h"

#include <unistd.h>

#include <atomic>
#include <charconv>

#include "apps/common/failure.h"
#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t link_patience = 3 * second;

// A number that no other process of this host uses, and this one only once.
uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return static_cast<uint64_t>(getpid()) * 1'000'000 + ++last;
}

}  // namespace

DpdkLimit::DpdkLimit(Side& side, Place place, std::string_view device)
    : PortLimit(side, place), device_(innermost_device(device)) {
  if (place == Place::client) number_ = next_number();
}

void DpdkLimit::open() {
  auto port = drivers::dpdk::open_raw_port(device_, number_);
  if (!port) throw Failure(Exit::error, "--limit: " + port.error().message);
  port_ = std::move(*port);
}

// The server opens its port first, unless that is the end which needs the other one: then it waits
// until the client has opened its own.
void DpdkLimit::meet(const std::string& told) {
  if (place() == Place::server) {
    const auto [end, failure] = std::from_chars(told.data(), told.data() + told.size(), number_);
    if (failure != std::errc{} || end != told.data() + told.size()) {
      throw Failure(Exit::error,
                    "--limit: the client has no such port. Fix: dpdk: devices at both ends");
    }
    if (device_.find("net_virtio_user") != device_.npos) return;
  }
  open();
  const int64_t until = now() + (place() == Place::client ? link_patience : 0);
  while (!port_->is_up() && now() < until) rest(millisecond, 0);
}

drivers::RawPort& DpdkLimit::port() {
  if (!port_) open();
  return *port_;
}

std::string DpdkLimit::pattern() const {
  return bandwidth() ? "dpdk bursts, CRC" : "dpdk ping-pong";
}

std::string DpdkLimit::why_silent() const {
  return "raw frames do not come back from the server. Fix: dpdk: devices at both ends, whose "
         "ports are each other's peers, or leave --limit out";
}

}  // namespace urma::apps::perf
