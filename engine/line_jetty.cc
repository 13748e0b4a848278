// SPDX-License-Identifier: Apache-2.0
#include "engine/line_jetty.h"

#include "base/assert.h"

namespace urma::engine {
namespace {

// Any process may send a line. The readers of the line decide what they do for it.
constexpr TokenValue open_token{0x6e616d65};

}  // namespace

LineJetty::LineJetty(jetty::Jetties& jetties, DirtySet& dirty)
    : dirty_(dirty),
      jfc_(std::make_shared<jetty::Jfc>(jetty::Queues::entries_of(slots, slots))),
      queues_(std::make_shared<jetty::Queues>(slots, slots, jfc_)),
      receive_buffers_(slots * line_bytes),
      sending_(slots),
      to_(slots) {
  jfc_->reserve(queues_->entries());
  const jetty::Jetty* jetty = jetties.create(names_jetty, open_token, {queues_, {}});
  URMA_ASSERT(jetty != nullptr, "the first Jetty of an engine finds room");
  index_ = jetties.index_of(*jetty);
  for (uint16_t i = 0; i < slots; ++i) {
    sending_[i].reserve(line_bytes);
    free_to_send_.push_back(i);
    post_receive(i);
  }
}

void LineJetty::post_receive(uint16_t slot) {
  const Buffer buffer{receive_buffers_.data() + slot * line_bytes, line_bytes};
  queues_->receive({&buffer, 1}, slot);
}

// Posts the line in the last free slot.
void LineJetty::post(PeerId to) {
  const uint16_t slot = free_to_send_.back();
  free_to_send_.pop_back();
  to_[slot] = to;
  const RemoteJetty target{.peer = to, .id = names_jetty, .token = open_token};
  const Work work = urma::send(std::as_bytes(std::span(sending_[slot])), target).tag(slot);
  queues_->post({&work, 1});
  dirty_.mark(index_);
}

}  // namespace urma::engine
