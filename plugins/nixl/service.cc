// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/service.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <system_error>
#include <utility>

namespace urma::nixl {
namespace {

// While works that no application polls for are outstanding.
constexpr int soon_ms = 10;

void run(Service::Descriptors descriptors, int stop, const std::function<bool()>& look) {
  for (;;) {
    const bool again = look();
    std::array<pollfd, 3> sources = {
        pollfd{.fd = stop, .events = POLLIN, .revents = 0},
        pollfd{.fd = descriptors.mailbox, .events = POLLIN, .revents = 0},
        pollfd{.fd = descriptors.events, .events = POLLIN, .revents = 0}};
    if (poll(sources.data(), sources.size(), again ? soon_ms : -1) < 0) continue;
    if (sources[0].revents != 0) return;
  }
}

}  // namespace

Result<Service> Service::start(Descriptors descriptors, std::function<bool()> look) {
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0) return error(Status::no_resources, "no descriptor is left for the thread");
  try {
    return Service(std::thread(run, descriptors, stop, std::move(look)), stop);
  } catch (const std::system_error&) {
    ::close(stop);
    return error(Status::no_resources, "no thread can be made");
  }
}

Service::~Service() {
  if (stop_ < 0) return;
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof one);
  thread_.join();
  ::close(stop_);
}

}  // namespace urma::nixl
