#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace urma::ordering {

// Decides when the completions of one queue may be shown. A signalled completion is withheld until
// every unsignalled work posted before it is done, because it tells the application that those
// succeeded and frees their berths. A failure is never withheld: it implies nothing.
//
// Whatever lies behind the oldest unfinished unsignalled work keeps its berth, so at most `berths`
// works are ever remembered.
class CompleteGate {
 public:
  struct Slot {
    uint16_t berth;
    uint8_t mark;
  };

  // `slots`: a power of two, at least the number of berths of the queue; zeroed.
  explicit CompleteGate(std::span<Slot> slots) : slots_(slots), mask_(slots.size() - 1) {}

  // The next work of the queue. Its number is what `done` names it by.
  uint64_t posted(uint16_t berth, bool signalled);

  // A work is done. True: its completion, if it has one, is shown now. False: it is withheld, or
  // (unsignalled and successful) has none.
  bool done(uint64_t number, bool signalled, bool failed);

  // After `done`: the next withheld completion that may be shown now, as its berth.
  std::optional<uint16_t> next_released();

 private:
  enum Mark : uint8_t { finished, open_signalled, open_unsignalled, withheld };

  Slot& slot(uint64_t number) { return slots_[number & mask_]; }
  void advance();

  std::span<Slot> slots_;
  uint64_t mask_;
  uint64_t next_ = 0;      // number of the next work
  uint64_t gate_ = 0;      // number of the oldest unfinished unsignalled work, or next_
  uint64_t released_ = 0;  // everything before it has been shown, or will show itself
};

}  // namespace urma::ordering
