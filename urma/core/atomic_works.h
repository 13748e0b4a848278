// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

#include "urma/core/work.h"

namespace urma {

// Atomics: works that change one word of a segment with Rights::atomic. Except for atomic_store,
// they fetch its previous value (Completion::fetched). A word has 1, 2, 4 or 8 bytes and is aligned
// to its size in the owner's memory; `offset` is in bytes from the beginning of the segment.
//
// Each atomic is indivisible with regard to all other atomics on the word, from any peer and over
// any path, and with regard to its owner's accesses, if the owner accesses the word by
// std::atomic_ref where the segment's AtomicDomain is `processor`, or by works on Segment::local
// where it is `engine`. Writes (urma::write) are not atomics.
//
// Words and operands are host integers; both hosts must have the same byte order. Sums and
// differences wrap.
//
// An atomic is executed at most once, whatever packets are lost and whichever process ends. If it
// completes as `unknown`, it may or may not have been executed: an application that must know
// stores evidence in the word itself (a version beside the value, or one counter for each writer).
// After any other failure the word is unchanged:
//   bad_work            not aligned, an invalid size, or with an immediate, a notification, or
//                       buffers (memory for the fetched value is set by Work::into)
//   remote_access       outside of the segment, or without Rights::atomic
//   unsupported         16, 32 or 64 bytes, or the segment's AtomicDomain is `device`
//   remote_unsupported  the owner's version has no atomics, or the segment is guarded
// An unsignalled atomic has no completion that could contain the previous value. Work::into stores
// it nevertheless.
template <class Word>
concept AtomicWord =
    std::integral<Word> && !std::same_as<Word, bool> &&
    (sizeof(Word) == 1 || sizeof(Word) == 2 || sizeof(Word) == 4 || sizeof(Word) == 8);

namespace detail {
inline Work atomic_of(Atomic what, size_t bytes, const RemoteSegment& segment, uint64_t offset,
                      uint64_t operand) {
  Work work(Operation::atomic, Buffer{nullptr, bytes}, segment, offset);
  work.atomic = what;
  work.immediate_value = operand;
  return work;
}
template <AtomicWord Word>
Work atomic_of(Atomic what, const RemoteSegment& segment, uint64_t offset, Word operand) {
  return atomic_of(what, sizeof(Word), segment, offset,
                   static_cast<std::make_unsigned_t<Word>>(operand));
}
}  // namespace detail

// The type of the word is a template argument, which is not deduced from the operand:
// fetch_add<uint32_t>(counter, 0, 1). Without the template argument, the word is a uint64_t. The
// functions only build a value; any thread may call them.

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
// word = desired, if the word equals `expected`. The work completes as `ok` in either case; the
// word was changed if Completion::fetched equals `expected`.
template <AtomicWord Word = uint64_t>
Work compare_swap(const RemoteSegment& segment, uint64_t offset,
                  std::type_identity_t<Word> expected, std::type_identity_t<Word> desired) {
  Work work = detail::atomic_of<Word>(Atomic::compare_swap, segment, offset, desired);
  work.expected_value = static_cast<std::make_unsigned_t<Word>>(expected);
  return work;
}
// Applies `update` to the word; its previous value arrives in Completion::fetched. Update::set with
// operand 0 loads the word without changing it.
template <AtomicWord Word = uint64_t>
Work atomic_load(const RemoteSegment& segment, uint64_t offset, Update update,
                 std::type_identity_t<Word> operand) {
  Work work = detail::atomic_of<Word>(Atomic::load, segment, offset, operand);
  work.update = update;
  return work;
}
// Applies `update` to the word. The previous value is not sent back, which makes this cheaper than
// atomic_load.
template <AtomicWord Word = uint64_t>
Work atomic_store(const RemoteSegment& segment, uint64_t offset, Update update,
                  std::type_identity_t<Word> operand) {
  Work work = detail::atomic_of<Word>(Atomic::store, segment, offset, operand);
  work.update = update;
  return work;
}

}  // namespace urma
