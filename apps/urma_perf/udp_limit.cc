// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/udp_limit.h"

#include "apps/common/failure.h"

namespace urma::apps::perf {

UdpLimit::UdpLimit(Side& side, Place place, const Eid& address)
    : side_(side), place_(place), address_(address), socket_(address) {
  if (side.what().test->bandwidth() || side.what().bytes > 65000) socket_.coalesce();
}

void UdpLimit::meet(const std::string& told) {
  socket_.connect(must(parse_endpoint(told), "the other side's raw socket"));
}

std::string UdpLimit::pattern() const {
  if (side_.what().test->bandwidth()) {
    if (!plan().train) return "udp sendmmsg";
    return plan().summed ? "udp trains, summed" : "udp trains";
  }
  return side_.what().test->asleep ? "udp wake" : "udp ping-pong";
}

std::string UdpLimit::why_silent() const {
  return "raw datagrams do not come back from the server. Fix: let UDP on any port pass, or leave "
         "--limit out";
}

void UdpLimit::begin() {
  round_trips_.clear();
  // Discards the datagrams that the last round has left.
  RawReceiver(socket_, plan(), side_.landing(), false).run(0);
  if (side_.what().test->bandwidth()) {
    begin_bursts();
  } else {
    begin_ping_pong();
  }
}

void UdpLimit::begin_ping_pong() {
  const Test& test = *side_.what().test;
  const bool client = place_ == Place::client;
  std::span<const std::byte> out = side_.source().first(side_.what().bytes);
  std::span<std::byte> in = side_.landing().first(side_.what().bytes);
  if (test.shape == Shape::post_to_completion) {
    const bool data_leaves = client != test.reads();
    if (data_leaves) in = acknowledgement_;
    if (!data_leaves) out = acknowledgement_;
  }
  const bool read = side_.what().verify;
  const int64_t rest = test.asleep ? rest_before_send : 0;
  if (client) {
    ping_.emplace(socket_, out, in, read, rest);
  } else {
    pong_.emplace(socket_, in, out, read, rest);
  }
}

void UdpLimit::begin_bursts() {
  if ((place_ == Place::client) != side_.what().test->reads()) {
    sender_.emplace(socket_, plan(), side_.source());
  } else {
    receiver_.emplace(socket_, plan(), side_.landing(), side_.what().verify);
  }
}

void UdpLimit::run(int64_t until) {
  if (ping_) ping_->run(until, round_trips_);
  if (pong_) pong_->run(until);
  if (sender_) sender_->run(until);
  if (receiver_) receiver_->run(until);
}

}  // namespace urma::apps::perf
