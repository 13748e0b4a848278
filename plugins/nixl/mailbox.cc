// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/mailbox.h"

#include <array>
#include <iterator>
#include <utility>

namespace urma::nixl {
namespace {

constexpr size_t buffers = 128;

uint64_t sender_of(PeerId peer) { return uint64_t{peer.index} << 32 | peer.generation; }

}  // namespace

Result<std::unique_ptr<Mailbox>> Mailbox::make(Device& device) {
  Result<Jetty> jetty = device.jetty({.berths = 0, .receives = buffers});
  if (!jetty) return jetty.error();
  const Result<int> fd = jetty->fd();
  if (!fd) return fd.error();
  std::unique_ptr<Mailbox> out(new Mailbox(std::move(*jetty), *fd));
  out->buffers_.resize(buffers * most_message_bytes);
  for (size_t i = 0; i < buffers; ++i) {
    if (!out->post(i)) return error(Status::no_resources, "a receive of the mailbox was refused");
  }
  return out;
}

void Mailbox::arm() {
  const std::scoped_lock lock(mutex_);
  (void)poll_and_arm(jetty_, [&](const Completion& arrival) { take_in(arrival); });
}

void Mailbox::take(notif_list_t& out) {
  const std::scoped_lock lock(mutex_);
  std::array<Completion, 32> arrivals;
  size_t count = 0;
  do {
    count = jetty_.poll(arrivals);
    for (const Completion& one : std::span(arrivals).first(count)) take_in(one);
  } while (count == arrivals.size());
  out.insert(out.end(), std::make_move_iterator(arrived_.begin()),
             std::make_move_iterator(arrived_.end()));
  arrived_.clear();
}

void Mailbox::forget(PeerId peer) {
  const std::scoped_lock lock(mutex_);
  assembly_.forget(sender_of(peer));
}

bool Mailbox::post(size_t buffer) {
  return jetty_.receive(
      std::span(buffers_).subspan(buffer * most_message_bytes, most_message_bytes), buffer);
}

void Mailbox::take_in(const Completion& arrival) {
  if (arrival.status == Status::closed || arrival.status == Status::forked) return;
  // A write with an immediate takes no buffer.
  if (arrival.operation != Operation::receive || arrival.written || arrival.tag >= buffers) return;
  if (arrival.ok()) {
    const auto message =
        std::span(buffers_).subspan(arrival.tag * most_message_bytes, arrival.bytes);
    if (auto note = assembly_.take(sender_of(arrival.from), message)) {
      arrived_.emplace_back(std::move(note->from), std::move(note->text));
    }
  }
  (void)post(arrival.tag);  // fails only when the device is closed
}

}  // namespace urma::nixl
