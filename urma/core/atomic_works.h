#pragma once

#include <concepts>
#include <type_traits>

#include "urma/core/work.h"

namespace urma {

// Atomics: works that change one word of a segment with Rights::atomic, and bring back what it was
// (Completion::fetched). 1, 2, 4 or 8 bytes, aligned to as many in the owner's memory; `offset`
// counts bytes from the segment's first one. Each is one step for all who use the word by atomics,
// whichever way these come, and for its owner: by std::atomic_ref where the segment's AtomicDomain
// is `processor`, by atomics of its own (Segment::local) where it is `engine`. Writes of words
// are no atomics.
//
// Words and operands are integers of the host: a word of another byte order than the owner's is no
// word. Sums wrap.
//
// Executed at most once, whatever is lost or dies on the way. Of one that ends as `unknown` nobody
// can say whether it was: who must know has the word say it (a version beside a value, a counter of
// each writer's own). All other failures say that the word is as it was:
//   bad_work            not aligned, no such width, or with an immediate, a notification, buffers
//   remote_access       outside of the segment, or without Rights::atomic
//   unsupported         16, 32 or 64 bytes; or the owner's device executes them (AtomicDomain)
//   remote_unsupported  its owner's version has none, or the segment is guarded
// An unsignalled one brings nothing back.
template <class Word>
concept AtomicWord =
    std::integral<Word> && !std::same_as<Word, bool> &&
    (sizeof(Word) == 1 || sizeof(Word) == 2 || sizeof(Word) == 4 || sizeof(Word) == 8);

namespace detail {
inline Work atomic_of(Atomic what, size_t bytes, const RemoteSegment& segment, uint64_t offset,
                      uint64_t operand) {
  Work work;
  work.operation = Operation::atomic;
  work.atomic = what;
  work.buffer = {nullptr, bytes};
  work.segment = segment;
  work.offset = offset;
  work.immediate_value = operand;
  return work;
}
template <AtomicWord Word>
Work atomic_of(Atomic what, const RemoteSegment& segment, uint64_t offset, Word operand) {
  return atomic_of(what, sizeof(Word), segment, offset,
                   static_cast<std::make_unsigned_t<Word>>(operand));
}
}  // namespace detail

// The word's type is said, not deduced: `fetch_add<uint32_t>(counter, 0, 1)`; 8 bytes if it is not.

// word += operand.
template <AtomicWord Word = uint64_t>
Work fetch_add(const RemoteSegment& segment, uint64_t offset, std::type_identity_t<Word> operand) {
  return detail::atomic_of<Word>(Atomic::fetch_add, segment, offset, operand);
}
// word -= operand.
template <AtomicWord Word = uint64_t>
Work fetch_sub(const RemoteSegment& segment, uint64_t offset, std::type_identity_t<Word> operand) {
  return detail::atomic_of<Word>(Atomic::fetch_sub, segment, offset, operand);
}
// word &= operand.
template <AtomicWord Word = uint64_t>
Work fetch_and(const RemoteSegment& segment, uint64_t offset, std::type_identity_t<Word> operand) {
  return detail::atomic_of<Word>(Atomic::fetch_and, segment, offset, operand);
}
// word |= operand.
template <AtomicWord Word = uint64_t>
Work fetch_or(const RemoteSegment& segment, uint64_t offset, std::type_identity_t<Word> operand) {
  return detail::atomic_of<Word>(Atomic::fetch_or, segment, offset, operand);
}
// word ^= operand.
template <AtomicWord Word = uint64_t>
Work fetch_xor(const RemoteSegment& segment, uint64_t offset, std::type_identity_t<Word> operand) {
  return detail::atomic_of<Word>(Atomic::fetch_xor, segment, offset, operand);
}
// word = desired.
template <AtomicWord Word = uint64_t>
Work swap(const RemoteSegment& segment, uint64_t offset, std::type_identity_t<Word> desired) {
  return detail::atomic_of<Word>(Atomic::swap, segment, offset, desired);
}
// word = desired, if it is `expected`: it was if that is what comes back. It completes as `ok` in
// either case.
template <AtomicWord Word = uint64_t>
Work compare_swap(const RemoteSegment& segment, uint64_t offset,
                  std::type_identity_t<Word> expected, std::type_identity_t<Word> desired) {
  Work work = detail::atomic_of<Word>(Atomic::compare_swap, segment, offset, desired);
  work.expected_value = static_cast<std::make_unsigned_t<Word>>(expected);
  return work;
}
// Updates the word and brings back what it was. `Update::set` of 0 only loads it.
template <AtomicWord Word = uint64_t>
Work atomic_load(const RemoteSegment& segment, uint64_t offset, Update update,
                 std::type_identity_t<Word> operand) {
  Work work = detail::atomic_of<Word>(Atomic::load, segment, offset, operand);
  work.update = update;
  return work;
}
// Updates the word; nothing comes back, which makes it cheaper.
template <AtomicWord Word = uint64_t>
Work atomic_store(const RemoteSegment& segment, uint64_t offset, Update update,
                  std::type_identity_t<Word> operand) {
  Work work = detail::atomic_of<Word>(Atomic::store, segment, offset, operand);
  work.update = update;
  return work;
}

}  // namespace urma
