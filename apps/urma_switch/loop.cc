// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/loop.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"

namespace urma::apps::switches {
namespace {

// Ports that cannot wake a thread are polled for so long without a pause, and then this often.
// Those that have to be armed may not signal a change of their link.
constexpr Duration polled_before_nap = std::chrono::milliseconds(1);
constexpr Duration mute_nap = std::chrono::microseconds(100);
constexpr Duration armed_nap = std::chrono::milliseconds(100);

}  // namespace

Loop::Loop(std::span<drivers::PacketPort* const> ports, const Forwarder::Settings& settings)
    : forwarder_(settings) {
  for (drivers::PacketPort* port : ports) {
    media_.emplace_back(*port, static_cast<uint8_t>(media_.size()));
  }
}

void Loop::run(const std::function<bool()>& stop, int also) {
  for (;;) {
    const Time now = read_clock();
    if (now >= next_tick_) {
      forwarder_.age(now);
      ask_switches(now);
      next_tick_ = now + tick;
    }
    const bool received = receive(now);
    const bool sent = send(now);
    if (stop()) return;
    if (received || sent) {
      idle_since_ = never;
    } else {
      give_way(now, also);
    }
  }
}

// All trunks are on the first medium.
void Loop::ask_switches(Time now) {
  for (uint32_t trunk = 0; trunk < forwarder_.trunks(); ++trunk) {
    media_[0].tell(forwarder_.ask(trunk), forwarder_.switches()[trunk].at, now);
  }
}

bool Loop::receive(Time now) {
  bool received = false;
  for (Medium& medium : media_) received = medium.receive(forwarder_, now) || received;
  return received;
}

Forwarder::Media Loop::full() const {
  Forwarder::Media full = 0;
  for (size_t i = 0; i < media_.size(); ++i) {
    if (media_[i].full()) full |= Forwarder::Media{1} << i;
  }
  return full;
}

bool Loop::send(Time now) {
  Forwarder::Media waiting = full();
  for (Forwarder::Leaving one; forwarder_.next(now, one, waiting);) {
    Medium& medium = media_[one.to.medium];
    medium.add(one);
    if (medium.full()) waiting |= Forwarder::Media{1} << one.to.medium;
  }
  bool sent = false;
  for (Medium& medium : media_) {
    sent = medium.send(now) || sent;
    medium.settle(forwarder_);
  }
  return sent;
}

// Nothing is to be done now. The other ends of ports that are polled are threads that poll as well,
// often on the same processors, so this thread lets them run.
void Loop::give_way(Time now, int also) {
  idle_since_ = std::min(idle_since_, now);
  const bool polled = std::ranges::any_of(media_, &Medium::polled);
  if (!polled) return sleep(due(now), also);
  if (now - idle_since_ < polled_before_nap) {
    sched_yield();
  } else {
    nap(now, also);
  }
}

// Returns when something is to be done even if nothing arrives.
Time Loop::due(Time now) const {
  constexpr Duration patience = std::chrono::milliseconds(1);  // if a port took nothing
  Time due = std::min(forwarder_.due(full()), next_tick_);
  for (const Medium& medium : media_) {
    due = std::min(due, medium.port().next_arrival());
    if (medium.busy()) due = std::min(due, now + patience);
  }
  return due;
}

// Sleeps, unless packets came before the ports were armed.
void Loop::nap(Time now, int also) {
  for (Medium& medium : media_) medium.arm();
  if (receive(now)) {
    idle_since_ = never;
  } else {
    const bool mute = std::ranges::any_of(media_, &Medium::mute);
    sleep(std::min(due(now), now + (mute ? mute_nap : armed_nap)), also);
  }
  for (Medium& medium : media_) medium.disarm();
}

void Loop::sleep(Time until, int also) {
  std::array<pollfd, most_media * drivers::PacketPort::most_descriptors + 1> watched;
  nfds_t count = 0;
  const auto watch = [&](int descriptor) {
    watched[count++] = {.fd = descriptor, .events = POLLIN, .revents = 0};
  };
  for (const Medium& medium : media_) std::ranges::for_each(medium.port().descriptors(), watch);
  if (also >= 0) watch(also);
  const int64_t left = std::max<int64_t>((until - read_clock()).count(), 0);
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  ppoll(watched.data(), count, &timeout, nullptr);
}

}  // namespace urma::apps::switches
