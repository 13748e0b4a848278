// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace urma {

// As memcpy, for ranges that are larger than the caches: the copy does not evict the contents of
// the caches, and does not read lines that it overwrites entirely. Other threads see the copy no
// later than anything stored after it.
void copy_past_caches(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace urma
