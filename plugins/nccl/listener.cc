// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/listener.h"

#include "plugins/nccl/log.h"

namespace urma::nccl {
namespace {

constexpr uint32_t waiting_greetings = 32;  // further ones wait at their senders

}  // namespace

Listener::Listener(SessionRef session, Jetty jetty)
    : session_(std::move(session)), greetings_(waiting_greetings), jetty_(std::move(jetty)) {}

Result<std::unique_ptr<Listener>> Listener::make(SessionRef session, void* handle) {
  auto jetty = session->device.jetty({.berths = 0, .receives = waiting_greetings});
  if (!jetty) return jetty.error();
  std::unique_ptr<Listener> out(new Listener(std::move(session), std::move(*jetty)));
  for (Greeting& each : out->greetings_) {
    const auto tag = static_cast<uint64_t>(&each - out->greetings_.data());
    if (!out->jetty_.receive(std::as_writable_bytes(std::span(&each, 1)), tag)) {
      return error(Status::closed, "the listener does not receive");
    }
  }
  const auto descriptor = parse_descriptor(out->jetty_.descriptor());
  if (!descriptor) return descriptor.error();
  write_handle(*descriptor, handle);
  return out;
}

Result<std::unique_ptr<Receiver>> Listener::accept() {
  std::array<Completion, 1> arrival;
  while (jetty_.poll(arrival) == 1) {
    if (!arrival[0].ok()) return error(arrival[0].status, "listening");
    const Greeting greeting = greetings_[arrival[0].tag];
    const auto room = std::as_writable_bytes(std::span(&greetings_[arrival[0].tag], 1));
    if (!jetty_.receive(room, arrival[0].tag)) {
      return error(Status::closed, "the listener does not receive");
    }
    if (is_probe(greeting, arrival[0].bytes)) continue;
    const auto sender = read_greeting(session_->device, greeting, arrival[0].bytes);
    if (!sender) {
      // The process behind it gets no answer; others may follow.
      warn("a greeting is refused: %s", sender.error().message.c_str());
      continue;
    }
    auto session = SessionRef::acquire();
    if (!session) return session.error();
    return Receiver::make(std::move(*session), *sender);
  }
  return std::unique_ptr<Receiver>();
}

}  // namespace urma::nccl
