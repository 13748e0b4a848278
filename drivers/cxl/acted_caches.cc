// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/acted_caches.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace urma::drivers::cxl {
namespace {

using Word = uint64_t;
constexpr size_t words = line_bytes / sizeof(Word);
// One call in so many has a line evicted.
constexpr uint64_t calls_for_each_eviction = 8;

std::atomic_ref<Word> word_at(std::byte* line, size_t index) {
  return std::atomic_ref(reinterpret_cast<Word*>(line)[index]);
}

}  // namespace

std::unique_ptr<ActedCaches> ActedCaches::make(std::byte* memory, size_t bytes, uint64_t seed) {
  void* const at = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::unique_ptr<ActedCaches>(
      new ActedCaches(memory, static_cast<std::byte*>(at), bytes, seed));
}

ActedCaches::ActedCaches(std::byte* memory, std::byte* copies, size_t bytes, uint64_t seed)
    : memory_(memory), copy_(copies), loaded_(copies + bytes), bytes_(bytes), prng_(seed) {}

ActedCaches::~ActedCaches() { munmap(copy_, 2 * bytes_); }

void ActedCaches::write_back(const void* at, size_t bytes) {
  for_lines(at, bytes, [this](size_t line) { write_back(line); });
}

void ActedCaches::refresh(const void* at, size_t bytes) {
  for_lines(at, bytes, [this](size_t line) { evict(line); });
}

template <class Function>
void ActedCaches::for_lines(const void* at, size_t bytes, Function&& each) {
  const auto begin = static_cast<size_t>(static_cast<const std::byte*>(at) - copy_);
  for (size_t line = begin / line_bytes * line_bytes; line < begin + bytes; line += line_bytes) {
    each(line);
  }
  latest_[next_++ % latest_.size()] = begin / line_bytes * line_bytes;
  evict_some();
}

// A real cache line moves as a whole. Here its first word is written last and read first: a reader
// that finds the new first word finds the rest of the line new.
void ActedCaches::write_back(size_t line) {
  for (size_t i = words; i-- > 0;) {
    const Word word = word_at(copy_ + line, i).load(std::memory_order_relaxed);
    word_at(memory_ + line, i).store(word, std::memory_order_release);
    word_at(loaded_ + line, i).store(word, std::memory_order_relaxed);
  }
}

void ActedCaches::load(size_t line) {
  for (size_t i = 0; i < words; ++i) {
    const Word word = word_at(memory_ + line, i).load(std::memory_order_acquire);
    word_at(copy_ + line, i).store(word, std::memory_order_relaxed);
    word_at(loaded_ + line, i).store(word, std::memory_order_relaxed);
  }
}

// Writes a line back only if this process has stored to it: otherwise another process may be its
// writer.
void ActedCaches::evict(size_t line) {
  if (std::memcmp(copy_ + line, loaded_ + line, line_bytes) != 0) write_back(line);
  load(line);
}

// Evicts lines that were asked for, or that lie behind those.
void ActedCaches::evict_some() {
  if (prng_.below(calls_for_each_eviction) != 0) return;
  constexpr uint64_t near = 8;
  const size_t line = latest_[prng_.below(latest_.size())] + prng_.below(near) * line_bytes;
  if (line + line_bytes > bytes_) return;
  evict(line);
}

}  // namespace urma::drivers::cxl
