// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle.h"

#include <algorithm>

#include "tests/sim/pattern.h"

namespace urma::test {
namespace {

// A separate function, because `require` is called for each byte: strings in its frame would make
// it slower than everything else under some sanitizers.
[[noreturn, gnu::noinline]] void violated(uint64_t offset, uint64_t work, const char* rule) {
  throw Violation(std::string(rule) + " (work " + std::to_string(work) + " at offset " +
                  std::to_string(offset) + ")");
}

void require(bool holds, uint64_t offset, uint64_t work, const char* rule) {
  if (!holds) violated(offset, work, rule);
}

}  // namespace

Memory::Memory(size_t bytes) : own_(bytes), bytes_(own_), expected_(bytes) {}
Memory::Memory(std::span<std::byte> bytes) : bytes_(bytes), expected_(bytes.size()) {}

bool Memory::overlaps(uint64_t offset, uint64_t bytes) const {
  auto next = ranges_.lower_bound(offset);
  if (next != ranges_.end() && next->first < offset + std::max<uint64_t>(bytes, 1)) return true;
  if (next == ranges_.begin()) return false;
  --next;
  return next->first + std::max<uint64_t>(next->second.bytes, 1) > offset;
}

bool Memory::free_to_write(uint64_t offset, uint64_t bytes) const {
  return offset + bytes <= bytes_.size() && !overlaps(offset, bytes);
}

void Memory::begin_write(uint64_t offset, uint64_t bytes, uint64_t work) {
  ranges_[offset] = {bytes, work, false};
}

void Memory::begin_read(uint64_t offset, uint64_t bytes) { ranges_[offset] = {bytes, 0, false}; }

void Memory::end_read(uint64_t offset) { ranges_.erase(offset); }

void Memory::check_read(uint64_t offset, std::span<const std::byte> bytes, uint64_t work) const {
  for (size_t i = 0; i < bytes.size() && !gone_; ++i) {
    require(bytes[i] == expected_[offset + i], offset + i, work,
            "a read returns the bytes that were written");
  }
}

void Memory::arrived(uint64_t offset, uint64_t work) {
  if (gone_) return;
  const auto at = ranges_.find(offset);
  if (at == ranges_.end() || at->second.work != work) return;  // that work has ended long ago
  const auto range = std::span(bytes_).subspan(offset, at->second.bytes);
  require(has_pattern(range, work), offset, work,
          "a process that sees a notification finds all data of the write");
}

void Memory::wrote(uint64_t offset, uint64_t work) {
  if (gone_) return end_read(offset);
  const Range range = ranges_.at(offset);
  require(has_pattern(std::span(bytes_).subspan(offset, range.bytes), work), offset, work,
          "a completed write is in place");
  std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), range.bytes,
              expected_.begin() + static_cast<ptrdiff_t>(offset));
  ranges_.erase(offset);
}

void Memory::not_written(uint64_t offset, uint64_t work) {
  if (gone_) return end_read(offset);
  const Range range = ranges_.at(offset);
  for (uint64_t i = 0; i < range.bytes; ++i) {
    require(bytes_[offset + i] == expected_[offset + i], offset + i, work,
            "a work that completes as not executed has changed nothing");
  }
  ranges_.erase(offset);
}

void Memory::unknown(uint64_t offset) { ranges_.at(offset).tainted = true; }

void Memory::refused(uint64_t offset) {
  if (gone_) return end_read(offset);
  const Range range = ranges_.at(offset);
  for (uint64_t i = 0; i < range.bytes; ++i) expected_[offset + i] = bytes_[offset + i];
  ranges_.erase(offset);
}

void Memory::freeze() {
  frozen_ = own_;
  gone_ = own_.empty();
}

void Memory::overwrite(std::byte with) {
  std::ranges::fill(own_, with);
  frozen_ = own_;
  gone_ = true;
}

void Memory::check_all(const std::string& where) const {
  if (!frozen_.empty() && frozen_ != own_) {
    throw Violation(where + ": memory of a dead process was written");
  }
  if (gone_) return;
  uint64_t done = 0;
  for (const auto& [offset, range] : ranges_) {
    check_untouched(done, offset);
    for (uint64_t i = 0; i < range.bytes; ++i) {
      const bool fits = bytes_[offset + i] == expected_[offset + i] ||
                        (range.work != 0 && bytes_[offset + i] == pattern(range.work, i));
      require(fits, offset + i, range.work, "each byte has its old or its new value");
    }
    done = offset + range.bytes;
  }
  check_untouched(done, bytes_.size());
}

void Memory::check_untouched(uint64_t from, uint64_t to) const {
  const auto first = bytes_.begin() + static_cast<ptrdiff_t>(from);
  const auto [differs, expected] = std::mismatch(first, bytes_.begin() + static_cast<ptrdiff_t>(to),
                                                 expected_.begin() + static_cast<ptrdiff_t>(from));
  const bool same = differs == bytes_.begin() + static_cast<ptrdiff_t>(to);
  require(same, static_cast<uint64_t>(differs - bytes_.begin()), 0,
          "only the bytes that a work names are written");
}

void Counter::added(uint64_t by, std::optional<uint64_t> found, uint64_t work) {
  sum_ += by;
  if (!found) return;
  const auto next = found_.lower_bound(*found);
  const bool meets_next = next != found_.end() && next->first < *found + by;
  const bool meets_last = next != found_.begin() && std::prev(next)->second > *found;
  require(!meets_next && !meets_last, *found, work, "no two additions fetch the same value");
  found_.emplace_hint(next, *found, *found + by);
}

void Counter::check(uint64_t value, uint64_t under_way) const {
  require(value >= sum_, value, 0, "no addition is lost");
  require(value <= sum_ + doubtful_ + under_way, value, 0, "no addition is executed twice");
  const uint64_t last = found_.empty() ? 0 : found_.rbegin()->second;
  require(value >= last, value, 0, "a counter does not decrease");
}

}  // namespace urma::test
