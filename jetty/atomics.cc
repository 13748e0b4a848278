// SPDX-License-Identifier: Apache-2.0
#include "jetty/atomics.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "base/assert.h"

namespace urma::jetty {
namespace {

template <class Word>
Word updated(Update update, Word word, Word operand) {
  using Signed = std::make_signed_t<Word>;
  const auto signed_word = static_cast<Signed>(word);
  const auto signed_operand = static_cast<Signed>(operand);
  switch (update) {
    case Update::add:
      return static_cast<Word>(word + operand);
    case Update::clear:
      return static_cast<Word>(word & static_cast<Word>(~operand));
    case Update::exclusive_or:
      return static_cast<Word>(word ^ operand);
    case Update::set:
      return static_cast<Word>(word | operand);
    case Update::signed_max:
      return static_cast<Word>(std::max(signed_word, signed_operand));
    case Update::signed_min:
      return static_cast<Word>(std::min(signed_word, signed_operand));
    case Update::unsigned_max:
      return std::max(word, operand);
    case Update::unsigned_min:
      return std::min(word, operand);
  }
  return word;
}

// For updates without an instruction: computes the new word, and tries again if another thread has
// changed it meanwhile.
template <class Word>
Word update_word(Update update, std::atomic_ref<Word> word, Word operand) {
  if (update == Update::add) return word.fetch_add(operand);
  Word was = word.load();
  while (!word.compare_exchange_weak(was, updated(update, was, operand))) {
  }
  return was;
}

template <class Word>
uint64_t execute_on(const AtomicCall& call, std::byte* at) {
  static_assert(std::atomic_ref<Word>::is_always_lock_free);
  const std::atomic_ref word(*reinterpret_cast<Word*>(at));
  const auto operand = static_cast<Word>(call.operand);
  switch (call.what) {
    case Atomic::compare_swap: {
      auto was = static_cast<Word>(call.expected);
      word.compare_exchange_strong(was, operand);
      return was;
    }
    case Atomic::swap:
      return word.exchange(operand);
    case Atomic::store:
    case Atomic::load:
      return update_word(call.update, word, operand);
    case Atomic::fetch_add:
      return word.fetch_add(operand);
    case Atomic::fetch_sub:
      return word.fetch_sub(operand);
    case Atomic::fetch_and:
      return word.fetch_and(operand);
    case Atomic::fetch_or:
      return word.fetch_or(operand);
    case Atomic::fetch_xor:
      return word.fetch_xor(operand);
  }
  URMA_ASSERT(false, "an atomic is one of those that there are");
  return 0;
}

// Calls `function` with the type of words of so many bytes.
template <class Function>
auto with_word(uint32_t bytes, Function&& function) {
  switch (bytes) {
    case 1:
      return function.template operator()<uint8_t>();
    case 2:
      return function.template operator()<uint16_t>();
    case 4:
      return function.template operator()<uint32_t>();
    default:
      URMA_ASSERT(bytes == 8, "a word has 1, 2, 4 or 8 bytes");
      return function.template operator()<uint64_t>();
  }
}

}  // namespace

uint64_t execute(const AtomicCall& call, std::byte* word) {
  URMA_ASSERT(reinterpret_cast<uintptr_t>(word) % call.bytes == 0, "a word is aligned");
  return with_word(call.bytes, [&]<class Word>() { return execute_on<Word>(call, word); });
}

void store_word(std::byte* to, uint32_t bytes, uint64_t value) {
  with_word(bytes, [&]<class Word>() {
    const auto word = static_cast<Word>(value);
    if (reinterpret_cast<uintptr_t>(to) % sizeof word != 0) {
      std::memcpy(to, &word, sizeof word);
    } else {
      std::atomic_ref(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
    }
  });
}

}  // namespace urma::jetty
