// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/handed_over.h"

#include <span>

namespace urma::drivers::cxl {

// This device's own segments are mapped in this process already. Memory of the window itself is not
// trusted here.
std::byte* HandedOver::find(const HandOver::There& there, const MemoryRange& range,
                            uint64_t offset) {
  if (there.name.file == 0) return nullptr;
  if (there.name.slot == slots_.own()) {
    const OwnFiles& own = hand_over_.own();
    const uint64_t bytes = own.bytes(there.segment);
    const bool known = own.is_open(there.segment, there.name.file) &&
                       own.knows(there.segment, number(range.token));
    const bool inside = offset <= bytes && range.bytes <= bytes - offset;
    return known && inside && !moved_[there.segment] ? own.at(there.segment) + offset : nullptr;
  }
  const bool to_write = has(range.wanted, Rights::write) || has(range.wanted, Rights::atomic);
  std::byte* const at = hand_over_.find(there, number(range.token), to_write, offset, range.bytes);
  return at != nullptr ? at : ask_for(there, range);
}

std::byte* HandedOver::ask_for(const HandOver::There& there, const MemoryRange& range) {
  const FileRequest request{.word = FileRequest::first_word,
                            .segment = there.segment,
                            .file = there.name.file,
                            .token_id = number(range.id),
                            .token = number(range.token),
                            .slot = slots_.own()};
  if (hand_over_.ask(request, there, now_)) notify(there.name.slot);
  return nullptr;
}

void HandedOver::notify(uint32_t slot) const {
  if (slot >= slot_count) return;
  words_.slot(slot).record.notifications.fetch_add(1);
  words_.bell_of(slot).ring();
}

bool HandedOver::lies_there(uint32_t segment, const HandOver::Name& name) const {
  const SegmentRecord& record = granules_.record(segment);
  return words_.generation(name.slot) == name.generation &&
         record.owner.load(std::memory_order_relaxed) == name.slot &&
         record.file.load(std::memory_order_relaxed) == name.file;
}

void HandedOver::forget_the_gone() {
  hand_over_.forget(
      [&](uint32_t segment, const HandOver::Name& name) { return !lies_there(segment, name); });
}

void HandedOver::watch() {
  notifications_ = &words_.slot(slots_.own()).record.notifications;
  // A request may have come since the socket was made: the first pass looks.
  seen_ = notifications_->load() - 1;
}

void HandedOver::handle_notifications() {
  seen_ = notifications_->load();
  forget_the_gone();
  const HandOver::Answered answered = hand_over_.look(now_);
  for (const uint32_t slot : std::span(answered.slots).first(answered.count)) notify(slot);
}

}  // namespace urma::drivers::cxl
