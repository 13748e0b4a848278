// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>

#include "apps/urma_perf/limit.h"
#include "apps/urma_perf/raw_udp.h"

namespace urma::apps::perf {

// The limit of UDP sockets without liburma.
class UdpLimit final : public Limit {
 public:
  UdpLimit(Side& side, Place place, const Eid& address);

  std::string told() const override { return to_string(Endpoint{address_, socket_.port()}); }
  void meet(const std::string& told) override;
  std::string pattern() const override;
  std::string why_silent() const override;

  void begin() override;
  void run(int64_t until) override;

  bool receives() const override { return receiver_.has_value(); }
  RawTally tally() const override { return receiver_ ? receiver_->tally : RawTally{}; }

 private:
  RawPlan plan() const { return raw_plan(side_.what().bytes, socket_, side_.what().summed); }
  void begin_ping_pong();
  void begin_bursts();

  Side& side_;
  Place place_;
  Eid address_;
  RawSocket socket_;
  std::array<std::byte, 64> acknowledgement_{};
  std::optional<RawPing> ping_;
  std::optional<RawPong> pong_;
  std::optional<RawSender> sender_;
  std::optional<RawReceiver> receiver_;
};

}  // namespace urma::apps::perf
