#include "jetty/jetty.h"

#include <utility>

namespace urma::jetty {

JettyParts::JettyParts(std::shared_ptr<Queues> queues_, std::shared_ptr<Jfc> jfc_,
                       const Timeouts& timeouts_)
    : timeouts(timeouts_),
      jfc(std::move(jfc_)),
      queues(std::move(queues_)),
      works(std::make_unique<WorkState[]>(queues->berths().count())),
      gate_slots(std::make_unique<ordering::CompleteGate::Slot[]>(queues->berths().count())) {
  recycled.reserve(queues->receives().count());
}

Jetty::Jetty(JettyId id_, TokenValue token_, JettyParts parts)
    : JettyParts(std::move(parts)),
      id(id_),
      token(token_),
      gate({gate_slots.get(), queues->berths().count()}) {}

Jetty* Jetties::create(JettyId id, TokenValue token, JettyParts parts) {
  Jetty* jetty = slab_.create(id, token, std::move(parts));
  if (jetty != nullptr) by_id_.insert(number(id), slab_.index_of(jetty));
  return jetty;
}

void Jetties::destroy(Jetty& jetty) {
  kick_ = wake() || kick_;
  by_id_.erase(number(jetty.id));
  jetty.jfc->retire(jetty.queues);
  slab_.destroy(&jetty);
}

Jetty* Jetties::find(JettyId id) {
  const uint32_t index = by_id_.find(number(id));
  return index == UINT32_MAX ? nullptr : &slab_.at(index);
}

void Jetties::complete(Jetty& jetty, const Completion& completion, uint16_t lease) {
  Jfc* const jfc = jetty.jfc.get();
  jfc->push(completion, jetty.queues.get(), lease);
  ++completed_;
  // Mostly one that was told already.
  for (size_t i = to_wake_count_; i-- > 0;) {
    if (to_wake_[i] == jfc) return;
  }
  if (to_wake_count_ == most_woken) kick_ = wake() || kick_;
  to_wake_[to_wake_count_++] = jfc;
}

bool Jetties::wake() {
  bool kick = std::exchange(kick_, false);
  for (Jfc* jfc : std::span(to_wake_).first(to_wake_count_)) kick = jfc->wake() || kick;
  to_wake_count_ = 0;
  return kick;
}

}  // namespace urma::jetty
