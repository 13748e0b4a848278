// SPDX-License-Identifier: Apache-2.0
#include "umdk/echo.h"

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/own_threads.h"
#include "umdk/jetty_name.h"
#include "umdk/log.h"
#include "urma/core/endpoint.h"

namespace urma::umdk {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t slots = 64;
constexpr size_t slot_bytes = 4096;  // the longest message of urma_ping
constexpr int look_again_ms = 2000;

}  // namespace

bool Echo::wanted() {
  const char* const set = std::getenv("URMA_PING");
  if (set == nullptr || *set == 0 || std::strcmp(set, "0") == 0) return false;
  if (std::strcmp(set, "1") == 0) return true;
  log(URMA_VLOG_LEVEL_WARNING, "urma_create_context",
      "URMA_PING is \"%.40s\", so it has no effect. Fix: set it to 1 to answer urma_ping, or to 0",
      set);
  return false;
}

Result<std::unique_ptr<Echo>> Echo::start(urma::Device& device) {
  auto jetty = device.jetty({.berths = 2 * slots,
                             .receives = slots,
                             .operation_timeout = 1s,
                             .receiver_timeout = 1s,
                             .id = ping_jetty,
                             .token = TokenValue{0}});
  if (!jetty) return jetty.error();
  if (const auto arrivals = jetty->fd(); !arrivals) return arrivals.error();
  std::unique_ptr<Echo> echo(new Echo(device, std::move(*jetty)));
  if (!echo->stop_) {
    return Error{Status::no_resources,
                 "cannot make a descriptor for urma_ping. Fix: allow more (ulimit -n)"};
  }
  echo->be_found();
  const auto entry = [](void* self) -> void* {
    static_cast<Echo*>(self)->run();
    return nullptr;
  };
  if (start_own_thread(echo->thread_, "urma-ping", entry, echo.get()) != 0) {
    return Error{Status::no_resources,
                 "cannot start a thread for urma_ping. Fix: allow more (ulimit -u)"};
  }
  echo->running_ = true;
  return echo;
}

Echo::Echo(urma::Device& device, urma::Jetty jetty)
    : device_(device),
      jetty_(std::move(jetty)),
      memory_(slots * slot_bytes),
      stop_(OwnDescriptor::event()),
      process_(getpid()) {
  for (uint32_t slot = 0; slot < slots; ++slot) post(slot);
}

Echo::~Echo() {
  if (getpid() != process_) return;  // a child of fork() has only one thread, and this is not it
  if (running_) {
    stop_.ring();
    pthread_join(thread_, nullptr);
  }
  if (published_) (void)device_.unpublish(ping_name);
}

void Echo::run() {
  const auto arrivals = jetty_.fd();
  for (;;) {
    const Armed armed = poll_and_arm(jetty_, [&](const Completion& done) { handle(done); });
    if (armed == Armed::ended || armed == Armed::no_descriptor) return;
    pollfd ready[2] = {{stop_.number(), POLLIN, 0}, {*arrivals, POLLIN, 0}};
    const int wait_ms = armed == Armed::not_empty ? 0 : found_ ? -1 : look_again_ms;
    const int count = ::poll(ready, 2, wait_ms);
    if (ready[0].revents != 0) return;
    if (count == 0 && armed == Armed::yes) be_found();
  }
}

void Echo::post(uint64_t slot) {
  (void)jetty_.receive(std::span(memory_).subspan(slot * slot_bytes, slot_bytes), slot);
}

// The buffer of a message is also that of its answer, so it is posted again when that has left.
void Echo::handle(const Completion& done) {
  if (done.status == Status::closed || done.status == Status::forked) return;
  if (done.operation != Operation::receive) return post(done.tag);
  // Two of these Jetties would never end to answer each other.
  const bool answers = done.ok() && done.from_jetty != ping_jetty && !done.written;
  if (answers) {
    const auto message = std::span(memory_).subspan(done.tag * slot_bytes, done.bytes);
    const RemoteJetty from{.peer = done.from, .id = done.from_jetty, .token = TokenValue{0}};
    Work answer = send(message, from).tag(done.tag);
    if (done.with_immediate) answer.immediate(done.immediate);
    if (jetty_.post(answer) == 1) return;
  }
  if (!done.written) post(done.tag);
}

void Echo::be_found() {
  published_ = published_ || publish();
  found_ = open_door() && published_;
}

bool Echo::publish() {
  const JettyName name(ping_jetty);
  if (in_window(device_.endpoint().address)) {
    const auto alone = publish_alone(device_, name, jetty_, everyone());
    if (!alone) tell(alone.error());
    return alone && *alone;
  }
  const auto published = device_.publish(name, jetty_, everyone());
  if (!published && published.status() != Status::address_in_use) tell(published.error());
  return published.ok();
}

// Says, once, why no process finds this one.
void Echo::tell(const Error& why) {
  if (!std::exchange(told_, true)) {
    log(URMA_VLOG_LEVEL_WARNING, "urma_create_context", "pings are not answered: %s",
        why.message.c_str());
  }
}

// Returns whether names at this address can be asked for.
bool Echo::open_door() {
  const Endpoint at = device_.endpoint();
  if (door_ || in_window(at.address) || at.port == ub_port) return true;
  const std::string address = to_string(at.address);
  const std::string text = at.is_ipv4() ? "udp:" + address : "udp:[" + address + "]";
  auto opened =
      open(text + ":" + std::to_string(ub_port),
           {.limits = {.jetties = 16, .peers = 1024, .segments = 16}, .observable = false});
  if (!opened) return false;
  door_.emplace(std::move(*opened));
  return true;
}

}  // namespace urma::umdk
