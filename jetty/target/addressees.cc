// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/addressees.h"

namespace urma::jetty {

using Verdict = Assembly::Verdict;

Addressees::Found Addressees::find(const Mtetah& named, TokenValue token, bool immediate) {
  if (is_group(JettyId(named.target))) return member(named, token, immediate);
  Jetty* const found = jetty(named, token);
  return {found, found == nullptr ? Verdict::refuse : Verdict::run};
}

Addressees::Found Addressees::member(const Mtetah& named, TokenValue token, bool immediate) {
  const auto id = JettyId(named.target);
  Groups::Group* const group = groups_.find(id);
  if (group == nullptr || jetty({.target = number(without_group_bit(id))}, token) == nullptr) {
    return {nullptr, Verdict::refuse};
  }
  const auto chosen =
      Groups::choose(*group, named.hint, [&](Handle each) { return room(each, immediate); });
  if (!chosen) return {nullptr, Verdict::no_receives};
  return {jetties_.find(*chosen), Verdict::run};
}

// Returns how many more messages, or writes with an immediate, the Jetty could take now; nothing if
// it takes none at all.
std::optional<uint32_t> Addressees::room(Handle member, bool immediate) {
  Jetty* const jetty = jetties_.find(member);
  if (jetty == nullptr || !jetty->accepts_messages()) return std::nullopt;
  Jetty* const receiver = jetties_.receiver(*jetty);
  if (receiver == nullptr || receiver->queues->jfr().count() == 0) return std::nullopt;
  const Jfr& jfr = receiver->queues->jfr();
  if (!immediate || receiver->immediates_take_receives) {
    return receiver->recycled_count + jfr.waiting();
  }
  return jfr.count() - (receiver->immediates_raised - jfr.immediates_polled());
}

Jetty* Addressees::with_number(const Mtetah& named) {
  const auto id = JettyId(named.target);
  if (is_group(id) && groups_.find(id) == nullptr) return nullptr;
  return jetties_.find(without_group_bit(id));
}

}  // namespace urma::jetty
