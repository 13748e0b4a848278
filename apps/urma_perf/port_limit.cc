// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/port_limit.h"

#include <algorithm>

#include "apps/urma_perf/machine.h"
#include "base/crc32.h"

namespace urma::apps::perf {
namespace {

constexpr unsigned looks_per_clock = 16;
constexpr int64_t frames_lost_after = 200 * millisecond;
// A burst that arrives: 32 frames of the largest MTU.
constexpr size_t most_burst_bytes = 32 * 9600;

}  // namespace

void PortLimit::begin() {
  port_ = &port();
  round_trips_.clear();
  tally_ = {};
  got_ = 0;
  drain();
  const Test& test = *side_.what().test;
  out_ = side_.source();
  in_ = side_.landing();
  if (test.bandwidth()) return;
  out_ = out_.first(side_.what().bytes);
  in_ = in_.first(side_.what().bytes);
  if (test.shape != Shape::post_to_completion) return;
  if (data_leaves()) {
    in_ = acknowledgement_;
  } else {
    out_ = acknowledgement_;
  }
}

void PortLimit::run(int64_t until) {
  const bool client = place_ == Place::client;
  if (bandwidth()) {
    receives() ? receive_bursts(until) : send_bursts(until);
  } else {
    client ? ping(until) : pong(until);
  }
}

void PortLimit::send(std::span<const std::byte> message) {
  // A port that is stuck drops frames after 10 ms.
  while (!message.empty()) {
    const size_t taken = port_->send(message, port_->frame_bytes());
    message = message.subspan(taken);
    if (taken == 0) spin();
  }
}

void PortLimit::drain() {
  while (port_->receive(side_.landing()) > 0) {
  }
}

void PortLimit::ping(int64_t until) {
  const int64_t resting = side_.what().test->asleep ? rest_before_send : 0;
  for (int64_t begin = now(); begin < until;) {
    begin = rest(resting, begin);
    send(out_);
    size_t got = 0;
    for (unsigned looks = 1; got < in_.size(); ++looks) {
      got += port_->receive(in_.subspan(got));
      if (looks % looks_per_clock != 0 || got == in_.size()) continue;
      spin();
      if (now() - begin < frames_lost_after) continue;
      // A part of a message was lost. Both sides drop the rest of theirs.
      drain();
      return;
    }
    if (side_.what().verify) read_words(in_);
    const int64_t end = now();
    round_trips_.record(
        static_cast<uint64_t>(std::max<int64_t>(end - begin - resting - clock_cost(), 0)));
    begin = end;
  }
}

void PortLimit::pong(int64_t until) {
  const int64_t resting = side_.what().test->asleep ? rest_before_send : 0;
  int64_t heard = now();
  for (unsigned looks = 1;; ++looks) {
    const size_t more = port_->receive(in_.subspan(got_));
    got_ += more;
    if (got_ == in_.size()) {
      got_ = 0;
      if (side_.what().verify) read_words(in_);
      hold(resting);
      send(out_);
    }
    if (more > 0) heard = now();
    if (looks % looks_per_clock != 0) continue;
    spin();
    const int64_t time = now();
    // The rest of this message is lost: its sender waits longer than this before it sends again.
    if (time - heard > frames_lost_after / 4) got_ = 0;
    if (time >= until) return;
  }
}

void PortLimit::send_bursts(int64_t until) {
  const size_t frame = std::min<size_t>(side_.what().bytes, port_->frame_bytes());
  do {
    if (at_ + frame > out_.size()) at_ = 0;
    const size_t taken = port_->send(out_.subspan(at_, (out_.size() - at_) / frame * frame), frame);
    crc_ = crc32_update(crc_, out_.data() + at_, taken);
    at_ += taken;
    if (taken == 0) spin();
  } while (now() < until);
}

void PortLimit::receive_bursts(int64_t until) {
  for (unsigned looks = 1;; ++looks) {
    if (at_ + most_burst_bytes > in_.size()) at_ = 0;
    const auto place = in_.subspan(at_);
    const size_t bytes = port_->receive(place);
    if (bytes == 0) {
      spin();
      if (looks % looks_per_clock == 0 && now() >= until) return;
      continue;
    }
    if (side_.what().verify) read_words(place.first(bytes));
    crc_ = crc32_update(crc_, place.data(), bytes);
    at_ += bytes;
    tally_.add(bytes, now());
    if (tally_.last >= until) return;
  }
}

}  // namespace urma::apps::perf
