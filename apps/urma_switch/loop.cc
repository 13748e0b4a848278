#include "apps/urma_switch/loop.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "base/copy.h"

namespace urma::apps::switches {

void Loop::run(const std::function<bool()>& stop, int also) {
  for (;;) {
    const Time now = read_clock();
    if (now >= next_tick_) {
      forwarder_.age(now);
      next_tick_ = now + tick;
    }
    const bool received = receive(now);
    const bool sent = send(now);
    settle();
    if (stop()) return;
    if (!received && !sent) sleep(now, also);
  }
}

bool Loop::receive(Time now) {
  std::array<RxFrame, burst> frames;
  const size_t count = port_.receive(frames, now);
  for (const RxFrame& frame : std::span(frames).first(count)) {
    const auto message = forwarder_.take({frame.data, frame.bytes}, *frame.from, frame.ecn, now);
    if (message) answer(*message, *frame.from, now);
  }
  port_.release(std::span(frames).first(count));
  return count > 0;
}

// A message that cannot leave is lost: the device asks again.
void Loop::answer(const LinkControl& message, const Endpoint& to, Time now) {
  TxFrame* frame = nullptr;
  if (port_.lend({&frame, 1}) == 0) return;
  const LinkControlBytes bytes = control_datagram(message);
  copy_bytes(frame->head, bytes.data(), bytes.size());
  frame->head_bytes = bytes.size();
  frame->piece_count = frame->tail_bytes = frame->path = 0;
  frame->ecn = Ecn::not_ect;
  frame->cci = 0;
  frame->to = to;
  const size_t taken = port_.send({&frame, 1}, now);
  if (taken == 0) port_.unlend({&frame, 1});
  taken_ += taken;
}

bool Loop::send(Time now) {
  for (Forwarder::Leaving one; leaving_.size() < burst && forwarder_.next(now, one);) {
    leaving_.push_back(one);
  }
  if (leaving_.empty()) return false;
  std::array<TxFrame*, burst> frames;
  const size_t lent = port_.lend(std::span(frames).first(leaving_.size()));
  for (size_t i = 0; i < lent; ++i) {
    const Forwarder::Leaving& one = leaving_[i];
    TxFrame& frame = *frames[i];
    frame.head_bytes = frame.tail_bytes = frame.path = 0;
    frame.piece_count = 1;
    frame.pieces[0] = {one.datagram.data(), static_cast<uint32_t>(one.datagram.size())};
    frame.ecn = one.ecn;
    frame.cci = 0;
    frame.to = one.to;
  }
  const size_t taken = port_.send(std::span(frames).first(lent), now);
  port_.unlend(std::span(frames).subspan(taken, lent - taken));
  for (size_t i = 0; i < taken; ++i) sent_.push_back({++taken_, leaving_[i].slot});
  leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<ptrdiff_t>(taken));
  return taken > 0;
}

void Loop::settle() {
  const uint64_t settled = port_.settled();
  for (; sent_first_ < sent_.size() && sent_[sent_first_].number <= settled; ++sent_first_) {
    forwarder_.release(sent_[sent_first_].slot);
  }
  // Usually all; a late port never settles all of them while packets flow.
  if (sent_first_ < sent_.size() / 2) return;
  sent_.erase(sent_.begin(), sent_.begin() + static_cast<ptrdiff_t>(sent_first_));
  sent_first_ = 0;
}

void Loop::sleep(Time now, int also) {
  std::array<pollfd, drivers::PacketPort::most_descriptors + 1> watched;
  nfds_t count = 0;
  for (const int descriptor : port_.descriptors()) {
    watched[count++] = {.fd = descriptor, .events = POLLIN, .revents = 0};
  }
  if (also >= 0) watched[count++] = {.fd = also, .events = POLLIN, .revents = 0};
  constexpr Duration patience = std::chrono::milliseconds(1);  // if the port took nothing
  const Time retry = leaving_.empty() && sent_.empty() ? never : now + patience;
  const Time until = std::min({forwarder_.due(), port_.next_arrival(), next_tick_, retry});
  const int64_t left = std::max<int64_t>((until - now).count(), 0);
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  ppoll(watched.data(), count, &timeout, nullptr);
}

}  // namespace urma::apps::switches
