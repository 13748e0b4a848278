// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/medium.h"

#include <array>

#include "base/copy.h"

namespace urma::apps::switches {

bool Medium::receive(Forwarder& forwarder, Time now) {
  std::array<RxFrame, burst> frames;
  const size_t count = port_.receive(frames, now);
  for (const RxFrame& frame : std::span(frames).first(count)) {
    const Place from(*frame.from, number_);
    const auto message = forwarder.take({frame.data, frame.bytes}, from, frame.ecn, now);
    if (message) tell(*message, *frame.from, now);
  }
  port_.release(std::span(frames).first(count));
  return count > 0;
}

// A message that cannot leave is lost: the device asks again.
void Medium::tell(const LinkControl& message, const Endpoint& to, Time now) {
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

bool Medium::send(Time now) {
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
    frame.to = one.to.endpoint;
  }
  const size_t taken = port_.send(std::span(frames).first(lent), now);
  port_.unlend(std::span(frames).subspan(taken, lent - taken));
  for (size_t i = 0; i < taken; ++i) sent_.push_back({++taken_, leaving_[i].slot});
  leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<ptrdiff_t>(taken));
  return taken > 0;
}

void Medium::settle(Forwarder& forwarder) {
  const uint64_t settled = port_.settled();
  for (; sent_first_ < sent_.size() && sent_[sent_first_].number <= settled; ++sent_first_) {
    forwarder.release(sent_[sent_first_].slot);
  }
  // Usually all; a late port never settles all of them while packets flow.
  if (sent_first_ < sent_.size() / 2) return;
  sent_.erase(sent_.begin(), sent_.begin() + static_cast<ptrdiff_t>(sent_first_));
  sent_first_ = 0;
}

}  // namespace urma::apps::switches
