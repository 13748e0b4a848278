// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "umdk/include/ub/umdk/urma/ub_util.h"

extern "C" {

unsigned long ub_find_next_bit(const unsigned long* array, unsigned long size,
                               unsigned long offset) {
  while (offset < size) {
    const unsigned long left = array[offset / BITS_PER_LONG] >> (offset % BITS_PER_LONG);
    if (left != 0) {
      return std::min(size, offset + static_cast<unsigned long>(std::countr_zero(left)));
    }
    offset = (offset / BITS_PER_LONG + 1) * BITS_PER_LONG;
  }
  return size;
}

unsigned long ub_find_first_bit(const unsigned long* array, unsigned long size) {
  return ub_find_next_bit(array, size, 0);
}

}  // extern "C"
