// SPDX-License-Identifier: Apache-2.0
#include "jetty/jetty.h"

#include <utility>

namespace urma::jetty {

Jetty::Jetty(JettyId id_, TokenValue token_, JettyParts parts)
    : JettyParts(std::move(parts)),
      id(id_),
      token(token_),
      works(queues->jfs().works()),
      gate(queues->jfs().gate_slots()) {
  static_assert(sizeof(Jetty) <= 120, "a million of them are made");
}

bool Jetty::take_receive(uint16_t& lease) {
  if (recycled_count > 0) {
    lease = recycled().back();
    --recycled_count;
    return true;
  }
  if (queues->jfr().waiting() == 0) return false;
  lease = queues->jfr().take_posted();
  return true;
}

Jetty* Jetties::create(JettyId id, TokenValue token, JettyParts parts) {
  Jetty* jetty = slab_.create(id, token, std::move(parts));
  if (jetty != nullptr) by_id_[number(id)] = slab_.index_of(jetty) + 1;
  return jetty;
}

void Jetties::destroy(Jetty& jetty) {
  kick_ = wake() || kick_;
  by_id_[number(jetty.id)] = 0;
  // If the Jetty has a completion queue of its own, that is not polled any more.
  if (!jetty.queues->has_own_jfc()) retire(jetty);
  slab_.destroy(&jetty);
}

void Jetties::retire(Jetty& jetty) {
  const std::shared_ptr<Jfc> jfc = jetty.queues->let_go_of_jfc();
  if (jetty.queues->used() || jetty.immediates_raised > 0) {
    jfc->retire(jetty.queues);
  } else {
    jfc->unreserve(jetty.queues->entries());
  }
}

Jetty* Jetties::find(JettyId id) {
  if (number(id) >= id_limit) return nullptr;
  const uint32_t place = by_id_[number(id)];
  return place == 0 ? nullptr : &slab_.at(place - 1);
}

void Jetties::note_to_wake(Jfc* jfc) {
  // A queue that is already in the list is near its end.
  for (size_t i = to_wake_count_; i-- > 0;) {
    if (to_wake_[i] == jfc) return;
  }
  if (to_wake_count_ == most_woken) kick_ = wake() || kick_;
  to_wake_[to_wake_count_++] = jfc;
}

}  // namespace urma::jetty
