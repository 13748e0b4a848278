// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace urma {

// The layout of several arrays that lie one behind the other in one block of zeroed memory. It is
// declared by the arrays' items and lengths. `Counts` is a struct of the numbers that the lengths
// depend on. Offsets are computed from these whenever an array is used, so a layout takes no
// memory.

// An array of `Count` times `Each` items.
template <class Item_, auto Count, size_t Each = 1>
struct ArrayOf {
  using Item = Item_;
  template <class Counts>
  static constexpr size_t bytes(const Counts& counts) {
    return counts.*Count * Each * sizeof(Item);
  }
};

// The arrays in order. Each has a different type of item, by which callers name the array. The
// block begins at a multiple of 8.
template <class Counts, class... Arrays>
class ArrayLayout {
 public:
  static constexpr size_t bytes(const Counts& counts) { return (Arrays::bytes(counts) + ... + 0); }

  // Returns where the array of this type begins.
  template <class Item>
  static constexpr size_t offset(const Counts& counts) {
    static_assert((std::is_same_v<Item, typename Arrays::Item> + ... + 0) == 1);
    size_t offset = 0;
    bool found = false;
    ((found = found || std::is_same_v<Item, typename Arrays::Item>,
      offset += found ? 0 : Arrays::bytes(counts)),
     ...);
    return offset;
  }
  template <class Item>
  static Item* begin(std::byte* block, const Counts& counts) {
    static_assert(is_aligned<Item>(), "the items of an earlier array do not keep this alignment");
    return reinterpret_cast<Item*>(block + offset<Item>(counts));
  }

 private:
  template <class Item>
  static constexpr bool is_aligned() {
    bool before = true;
    bool aligned = alignof(Item) <= 8;
    ((before = before && !std::is_same_v<Item, typename Arrays::Item>,
      aligned = aligned && (!before || sizeof(typename Arrays::Item) % alignof(Item) == 0)),
     ...);
    return aligned;
  }
};

}  // namespace urma
