#include "drivers/cxl/handed_over.h"

#include <span>

namespace urma::drivers::cxl {

// This device's own segments are mapped in this process already. Memory of the window itself is not
// trusted here.
std::byte* HandedOver::find(const HandOver::There& there, const MemoryRange& range,
                            uint64_t offset) {
  if (there.name.file == 0) return nullptr;
  if (there.name.place == slots_.own()) {
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
                            .place = slots_.own()};
  if (hand_over_.ask(request, there, now_)) tell(there.name.place);
  return nullptr;
}

void HandedOver::tell(uint32_t slot) const {
  if (slot >= places) return;
  words_.slot(slot).record.told.fetch_add(1);
  words_.bell_of(slot).ring();
}

bool HandedOver::lies_there(uint32_t segment, const HandOver::Name& name) const {
  const SegmentRecord& record = granules_.record(segment);
  return words_.generation(name.place) == name.generation &&
         record.owner.load(std::memory_order_relaxed) == name.place &&
         record.file.load(std::memory_order_relaxed) == name.file;
}

void HandedOver::forget_the_gone() {
  hand_over_.forget(
      [&](uint32_t segment, const HandOver::Name& name) { return !lies_there(segment, name); });
}

void HandedOver::watch() {
  told_ = &words_.slot(slots_.own()).record.told;
  // A request may have come since the socket was made: the first pass looks.
  told_seen_ = told_->load() - 1;
}

void HandedOver::take_what_is_told() {
  told_seen_ = told_->load();
  forget_the_gone();
  const HandOver::Told told = hand_over_.look(now_);
  for (const uint32_t slot : std::span(told.places).first(told.count)) tell(slot);
}

}  // namespace urma::drivers::cxl
