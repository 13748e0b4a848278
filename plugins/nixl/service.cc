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

}  // namespace

void Service::run() {
  while (!stops_) {
    const bool again = look_();
    std::array<pollfd, 3> sources = {
        pollfd{.fd = bell_, .events = POLLIN, .revents = 0},
        pollfd{.fd = descriptors_.mailbox, .events = POLLIN, .revents = 0},
        pollfd{.fd = descriptors_.events, .events = POLLIN, .revents = 0}};
    if (poll(sources.data(), sources.size(), again ? soon_ms : -1) <= 0) continue;
    uint64_t rung = 0;
    if (sources[0].revents != 0) (void)!::read(bell_, &rung, sizeof rung);
  }
}

Result<std::unique_ptr<Service>> Service::start(Descriptors descriptors,
                                                std::function<bool()> look) {
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) return error(Status::no_resources, "no descriptor is left for the thread");
  std::unique_ptr<Service> out(new Service(descriptors, bell, std::move(look)));
  try {
    out->thread_ = std::thread([service = out.get()] { service->run(); });
  } catch (const std::system_error&) {
    return error(Status::no_resources, "no thread can be made");
  }
  return out;
}

Service::~Service() {
  stops_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  ::close(bell_);
}

void Service::wake() {
  const uint64_t one = 1;
  (void)!::write(bell_, &one, sizeof one);
}

}  // namespace urma::nixl
