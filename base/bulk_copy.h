#pragma once

#include <cstddef>

namespace urma {

// As memcpy, of more than caches hold: what is in them stays, and lines that are written whole are
// not read first. Others see it no later than what is stored behind it.
void copy_past_caches(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace urma
