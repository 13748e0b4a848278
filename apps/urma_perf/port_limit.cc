#include "apps/urma_perf/dpdk_limit.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>

#include "apps/common/failure.h"
#include "apps/urma_perf/machine.h"
#include "base/crc32.h"

namespace urma::apps::perf {
namespace {

constexpr unsigned looks_per_clock = 16;
constexpr int64_t lost_after = 200 * millisecond;
constexpr int64_t link_patience = 3 * second;
// A burst that arrives: 32 frames of the largest MTU.
constexpr size_t most_burst_bytes = 32 * 9600;

// A number that no other process of this host uses, and this one only once.
uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return static_cast<uint64_t>(getpid()) * 1'000'000 + ++last;
}

}  // namespace

DpdkLimit::DpdkLimit(Side& side, Place place, std::string_view device)
    : side_(side), place_(place), device_(innermost_device(device)) {
  if (place == Place::client) number_ = next_number();
}

void DpdkLimit::open() {
  auto port = drivers::dpdk::open_raw_port(device_, number_);
  if (!port) throw Failure(Exit::error, "--limit: " + port.error().message);
  port_ = std::move(*port);
}

// The server opens its port first, unless that is the end which needs the other one: then it waits
// until the client has opened its own.
void DpdkLimit::meet(const std::string& told) {
  if (place_ == Place::server) {
    const auto [end, failure] = std::from_chars(told.data(), told.data() + told.size(), number_);
    if (failure != std::errc{} || end != told.data() + told.size()) {
      throw Failure(Exit::error,
                    "--limit: the client has no such port. Fix: dpdk: devices at both ends");
    }
    if (device_.find("net_virtio_user") != device_.npos) return;
  }
  open();
  const int64_t until = now() + (place_ == Place::client ? link_patience : 0);
  while (!port_->is_up() && now() < until) rest(millisecond, 0);
}

std::string DpdkLimit::pattern() const {
  return bandwidth() ? "dpdk bursts, CRC" : "dpdk ping-pong";
}

std::string DpdkLimit::why_silent() const {
  return "raw frames do not come back from the server. Fix: dpdk: devices at both ends, whose "
         "ports are each other's peers, or leave --limit out";
}

void DpdkLimit::begin() {
  if (!port_) open();
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

void DpdkLimit::run(int64_t until) {
  const bool client = place_ == Place::client;
  if (bandwidth()) {
    receives() ? receive_bursts(until) : send_bursts(until);
  } else {
    client ? ping(until) : pong(until);
  }
}

void DpdkLimit::send(std::span<const std::byte> message) {
  // A port that is stuck drops frames after 10 ms.
  while (!message.empty()) {
    const size_t taken = port_->send(message, port_->frame_bytes());
    message = message.subspan(taken);
    if (taken == 0) spin();
  }
}

void DpdkLimit::drain() {
  while (port_->receive(side_.landing()) > 0) {
  }
}

void DpdkLimit::ping(int64_t until) {
  const int64_t resting = side_.what().test->asleep ? rest_before_send : 0;
  for (int64_t begin = now(); begin < until;) {
    begin = rest(resting, begin);
    send(out_);
    size_t got = 0;
    for (unsigned looks = 1; got < in_.size(); ++looks) {
      got += port_->receive(in_.subspan(got));
      if (looks % looks_per_clock != 0 || got == in_.size()) continue;
      spin();
      if (now() - begin < lost_after) continue;
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

void DpdkLimit::pong(int64_t until) {
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
    if (time - heard > lost_after / 4) got_ = 0;
    if (time >= until) return;
  }
}

void DpdkLimit::send_bursts(int64_t until) {
  const size_t frame = std::min<size_t>(side_.what().bytes, port_->frame_bytes());
  do {
    if (at_ + frame > out_.size()) at_ = 0;
    const size_t taken = port_->send(out_.subspan(at_, (out_.size() - at_) / frame * frame), frame);
    crc_ = crc32_update(crc_, out_.data() + at_, taken);
    at_ += taken;
    if (taken == 0) spin();
  } while (now() < until);
}

void DpdkLimit::receive_bursts(int64_t until) {
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
