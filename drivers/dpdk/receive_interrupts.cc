// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/receive_interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <rte_ethdev.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/above_standard.h"

namespace urma::drivers::dpdk {
namespace {

// A change of the link, and of a queue that the peer has made ready.
constexpr rte_eth_event_type changes[] = {RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_QUEUE_STATE};
constexpr size_t most_events = 16;
constexpr timespec between_waits = {.tv_sec = 0, .tv_nsec = 50'000};
// How long a thread that ends a connection waits for one that turns interrupts on. The latter may
// itself wait for a lock that the former has, so the wait must end.
constexpr unsigned most_looks = 200;

int report_change(uint16_t, rte_eth_event_type, void* interrupts, void*) {
  static_cast<ReceiveInterrupts*>(interrupts)->handle_change();
  return 0;
}

bool every_queue_has_descriptor(uint16_t port, uint16_t queues) {
  for (uint16_t i = 0; i < queues; ++i) {
    if (rte_eth_dev_rx_intr_ctl_q_get_fd(port, i) < 0) return false;
  }
  return true;
}

}  // namespace

ReceiveInterrupts::~ReceiveInterrupts() { close(); }

void ReceiveInterrupts::close() {
  for (int* descriptor : {&event_, &epoll_}) {
    if (*descriptor != none) ::close(*descriptor);
    *descriptor = none;
  }
}

Result<void> ReceiveInterrupts::open() {
  epoll_ = above_standard(epoll_create1(EPOLL_CLOEXEC));
  event_ = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (epoll_ == none || event_ == none) {
    return Error{Status::no_resources,
                 std::string("dpdk: cannot make a descriptor at which threads sleep: ") +
                     std::strerror(errno) + ". Fix: close descriptors, or allow more (ulimit -n)"};
  }
  add(event_);
  return {};
}

std::span<const int> ReceiveInterrupts::descriptors() const {
  return epoll_ == none ? std::span<const int>{} : std::span(&epoll_, 1);
}

// Edge-triggered: no thread reads the descriptors of DPDK empty.
void ReceiveInterrupts::add(int descriptor) const {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = descriptor}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

void ReceiveInterrupts::watch(uint16_t port, uint16_t queues) {
  if (epoll_ == none) return;
  // vhost before 22.11.2 has descriptors only while it has a peer. A thread that sleeps meanwhile
  // would not notice its packets.
  const bool first = queues_ == 0;
  if (first && !every_queue_has_descriptor(port, queues)) return close();
  port_ = port;
  queues_ = queues;
  for (const auto change : changes) {
    rte_eth_dev_callback_register(port_, change, report_change, this);
  }
  for (uint16_t i = 0; i < queues_; ++i) {
    const int descriptor = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, i);
    if (descriptor < 0) continue;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);  // those of vhost survive exec
    add(descriptor);
  }
  watches_ = true;
  if (armed_) turn(true);
  signal();
}

void ReceiveInterrupts::forget() {
  if (!watches_) return;
  watches_ = false;
  for (uint16_t i = 0; i < queues_; ++i) {
    const int descriptor = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, i);
    if (descriptor >= 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  }
  // A call in progress is not removed.
  for (const auto change : changes) {
    while (rte_eth_dev_callback_unregister(port_, change, report_change, this) == -EAGAIN) {
      ppoll(nullptr, 0, &between_waits, nullptr);
    }
  }
}

void ReceiveInterrupts::arm() {
  if (epoll_ == none) return;
  std::array<epoll_event, most_events> seen;
  while (epoll_wait(epoll_, seen.data(), most_events, 0) == most_events) {
  }
  armed_ = true;
  turn(true);
}

void ReceiveInterrupts::disarm() {
  if (!armed_) return;
  armed_ = false;
  turn(false);
}

bool ReceiveInterrupts::take_change() {
  return changed_.load(std::memory_order_relaxed) && changed_.exchange(false);
}

// When a connection ends, vhost first forbids its use, then reports the change, and frees its state
// when the report has returned (`handle_change`).
void ReceiveInterrupts::turn(bool on) {
  if (!watches_) return;
  switching_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (uint16_t i = 0; i < queues_; ++i) {
    on ? rte_eth_dev_rx_intr_enable(port_, i) : rte_eth_dev_rx_intr_disable(port_, i);
  }
  // The peer either sees that interrupts are on, or has written what the caller then reads.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  switching_.store(false, std::memory_order_release);
}

void ReceiveInterrupts::handle_change() {
  changed_.store(true);
  signal();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (unsigned i = 0; i < most_looks && switching_.load(std::memory_order_acquire); ++i) {
    ppoll(nullptr, 0, &between_waits, nullptr);
  }
}

void ReceiveInterrupts::signal() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof one);
}

}  // namespace urma::drivers::dpdk
