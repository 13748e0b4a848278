// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "congestion/controller.h"
#include "congestion/echo.h"
#include "fabric/network.h"

namespace urma::fabric {

// Endless flows of a network without losses, each with a congestion controller. Receivers
// acknowledge each packet. Each host has at most one flow.
class ControlledFlows {
 public:
  static constexpr uint32_t mtu = 4096;
  static constexpr uint32_t ack_bytes = 64;

  ControlledFlows(Network& network, std::string_view controller, Duration base_rtt)
      : network_(network), kind_(*congestion::find_controller(controller)), base_rtt_(base_rtt) {}

  // Returns the number of the flow, which begins at `begin`.
  uint32_t add(uint32_t from, uint32_t to, Time begin, double bytes_per_second) {
    const auto number = static_cast<uint32_t>(flows_.size());
    flows_.push_back(std::make_unique<Flow>());
    Flow& flow = *flows_.back();
    flow.from = from;
    flow.to = to;
    flow.controller = kind_.make(flow.storage, {.packet_bytes = mtu,
                                                .limit_bytes = 64 << 20,
                                                .bytes_per_second = bytes_per_second,
                                                .base_rtt = base_rtt_,
                                                .seed = number + 1});
    flow.timer_at = begin;
    network_.set_timer(from, begin, number);
    return number;
  }

  void run(Time until) {
    Network::Happening it;
    while (network_.next(until, it)) {
      const bool timer = it.what == Network::What::timer;
      const auto number = timer ? it.tag : static_cast<uint32_t>(it.packet.handle >> 32);
      Flow& flow = *flows_[number];
      if (timer) {
        if (flow.timer_at <= network_.now()) flow.timer_at = never;
        send(flow, number);
      } else if (it.host == flow.to) {
        acknowledge(flow, it.packet);
      } else {
        handle_acknowledgement(flow);
        send(flow, number);
      }
    }
  }

  // Returns the bytes that the flow has delivered since the last call.
  uint64_t take_delivered(uint32_t number) { return std::exchange(flows_[number]->delivered, 0); }

 private:
  struct Flow {
    alignas(16) std::byte storage[congestion::Controller::storage];
    congestion::Controller* controller = nullptr;
    congestion::Echo echo;
    uint32_t from = 0;
    uint32_t to = 0;
    uint64_t sent = 0;  // packets
    uint64_t inflight = 0;
    uint64_t delivered = 0;
    std::deque<Time> sent_at;
    std::deque<congestion::Feedback> feedback;  // in acknowledgements on their way
    Duration smoothed{};
    Duration least = Duration::max();
    Time timer_at = never;

    ~Flow() { controller->~Controller(); }
  };

  Packet packet_of(uint32_t number, uint32_t from, uint32_t to, uint32_t bytes) const {
    return {.source = Topology::address_of(from),
            .destination = Topology::address_of(to),
            .bytes = bytes,
            .lbf = static_cast<uint8_t>(number),
            .ecn = bytes == mtu ? Ecn::ect0 : Ecn::not_ect,
            .handle = uint64_t{number} << 32};
  }

  void send(Flow& flow, uint32_t number) {
    const Time now = network_.now();
    for (;;) {
      const congestion::Allowance allowance = flow.controller->allowance(now);
      if (flow.inflight > 0 && flow.inflight + mtu > allowance.window_bytes) return;
      if (allowance.not_before > now) return wait(flow, number, allowance.not_before);
      Packet packet = packet_of(number, flow.from, flow.to, mtu);
      packet.signal = flow.controller->request({.now = now,
                                                .number = flow.sent++,
                                                .bytes = mtu,
                                                .again = false,
                                                .inflight_bytes = flow.inflight});
      flow.inflight += mtu;
      flow.sent_at.push_back(now);
      network_.send(flow.from, packet);
    }
  }

  void wait(Flow& flow, uint32_t number, Time until) {
    if (flow.timer_at <= until) return;
    flow.timer_at = until;
    network_.set_timer(flow.from, until, number);
  }

  void acknowledge(Flow& flow, const Packet& packet) {
    flow.delivered += packet.bytes;
    flow.echo.add(packet.signal, packet.bytes, kind_.needs);
    congestion::Feedback feedback = flow.echo.take(kind_.needs);
    feedback.marked_bytes = packet.ecn == Ecn::ce ? packet.bytes : 0;
    flow.feedback.push_back(feedback);
    Packet answer = packet_of(0, flow.to, flow.from, ack_bytes);
    answer.handle = packet.handle;
    network_.send(flow.to, answer);
  }

  void handle_acknowledgement(Flow& flow) {
    const Time now = network_.now();
    const Duration sample = now - flow.sent_at.front();
    flow.least = std::min(flow.least, sample);
    flow.smoothed = flow.smoothed == Duration{} ? sample : (flow.smoothed * 7 + sample) / 8;
    const congestion::Feedback feedback = flow.feedback.front();
    flow.controller->handle(congestion::Acknowledged{.now = now,
                                                     .rtt = flow.smoothed,
                                                     .bytes = mtu,
                                                     .inflight_bytes = flow.inflight,
                                                     .sample = sample,
                                                     .least_rtt = flow.least,
                                                     .feedback = &feedback});
    flow.inflight -= mtu;
    flow.sent_at.pop_front();
    flow.feedback.pop_front();
  }

  Network& network_;
  const congestion::ControllerKind& kind_;
  Duration base_rtt_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace urma::fabric
