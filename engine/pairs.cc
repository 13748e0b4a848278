// SPDX-License-Identifier: Apache-2.0
#include "engine/pairs.h"

namespace urma::engine {

Pairs::Pairs(const Uses& uses)
    : access_(uses.access),
      slices_(uses.slices),
      active_({uses.access, uses.lines, uses.transport, uses.slices}),
      passive_({uses.access, uses.lines, uses.transport, uses.segments, uses.judge}) {
  slices_.set_carrier(&active_);
}

Pairs::~Pairs() { slices_.set_carrier(nullptr); }

bool Pairs::pass(Time now) {
  passed_at_ = now;
  std::array<drivers::RemoteAccess::Ended, 64> ended;
  const size_t count = access_.ended(ended);
  for (const auto& one : std::span(ended).first(count)) {
    if (one.done) active_.worked(slices_.peer_of(one.number));
    slices_.ended(one.number, one.done, now);
  }
  std::array<drivers::RemoteAccess::News, 16> news;
  const size_t told = access_.news(news);
  for (const auto& one : std::span(news).first(told)) {
    if (!active_.handle(one, now)) passive_.handle(one);
  }
  if (now >= active_.next_look()) active_.look(now);
  if (now >= look_at_) {
    passive_.look();
    look_at_ = passive_.empty() ? never : now + between_looks;
  }
  return count + told > 0;
}

bool Pairs::handle(PeerId from, std::string_view line, Time now) {
  const auto message = read_pair_message(line);
  if (!message) return false;
  using Kind = PairMessage::Kind;
  const bool asks =
      message->kind == Kind::pair || message->kind == Kind::unpair || message->kind == Kind::key;
  if (!asks) {
    active_.handle(from, *message, now);
  } else {
    passive_.handle(from, *message, now);
    look_at_ = std::min(look_at_, now + between_looks);
  }
  return true;
}

}  // namespace urma::engine
