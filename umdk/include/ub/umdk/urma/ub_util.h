// SPDX-License-Identifier: Apache-2.0
#pragma once

// These are used by UMDK's programs beside URMA: numbers in texts, huge pages, bitmaps. The
// functions are in liburma_common. Programs rely on the headers that this one includes.

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef MAX
#define MAX(X, Y) ((X) > (Y) ? (X) : (Y))
#define MIN(X, Y) ((X) < (Y) ? (X) : (Y))
#endif

#ifndef DIV_ROUND_UP
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#endif

#ifndef ROUND_UP
#define ROUND_UP(n, d) (DIV_ROUND_UP(n, d) * (d))
#endif

#ifndef ROUND_DOWN
#define ROUND_DOWN(n, d) ((n) / (d) * (d))
#endif

#ifndef IS_POW2
#define IS_POW2(n) ((n) != 0 && ((n) & ((n)-1)) == 0)
#endif

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#endif

// ---- numbers in texts

// Each reads a whole text as a number: decimal, 0x... or 0...; `true` or `false` for a bool. They
// return 0, or leave the result as it is and return -EINVAL (the text is null, or negative although
// the type is not; neither `true` nor `false`), -ENOEXEC (it is not a number), -ERANGE (it is too
// large for the type) or -EFAULT (it is too large for 64 bits).
int ub_str_to_bool(const char* buf, bool* bool_res);
int ub_str_to_u8(const char* buf, uint8_t* u8);
int ub_str_to_u16(const char* buf, uint16_t* u16);
int ub_str_to_u32(const char* buf, uint32_t* u32);
int ub_str_to_u64(const char* buf, uint64_t* u64);
int ub_str_to_int(const char* buf, int* integer);

// ---- memory

typedef enum urma_huge_page_size {
  UB_HUGE_PAGE_SIZE_2MB,
  UB_HUGE_PAGE_SIZE_1GB,
  UB_HUGE_PAGE_SIZE_ANY
} urma_huge_page_size_t;

// Returns zeroed memory of huge pages, or null if there are not enough or `i_length` is 0.
// `UB_HUGE_PAGE_SIZE_ANY` is the system's usual size, and `p_addr_hint` an address or null.
void* ub_hugemalloc(size_t i_length, urma_huge_page_size_t hps, void* p_addr_hint);
// Returns 0, -EINVAL (null), or -1 and sets errno.
int ub_hugefree(void* p_addr, size_t i_length);

// ---- bitmaps, as arrays of unsigned long

#define BITS_PER_BYTE 8
#define BITS_PER_LONG 64
#define BITS_TO_LONGS(cnt) DIV_ROUND_UP((cnt), BITS_PER_LONG)

static inline void set_bit(uint32_t nr, unsigned long* addr) {
  addr[nr / BITS_PER_LONG] |= 1UL << (nr % BITS_PER_LONG);
}

static inline void clear_bit(uint32_t nr, unsigned long* addr) {
  addr[nr / BITS_PER_LONG] &= ~(1UL << (nr % BITS_PER_LONG));
}

static inline int test_bit(unsigned int nr, const unsigned long* addr) {
  return (addr[nr / BITS_PER_LONG] >> (nr % BITS_PER_LONG) & 1) != 0;
}

static inline void bitmap_zero(unsigned int nbits, unsigned long* addr) {
  memset(addr, 0, BITS_TO_LONGS((size_t)nbits) * sizeof(unsigned long));
}

// Return the first bit that is set, from `offset` on, or `size` if there is none below it.
unsigned long ub_find_first_bit(const unsigned long* array, unsigned long size);
unsigned long ub_find_next_bit(const unsigned long* array, unsigned long size,
                               unsigned long offset);

#define for_each_set_bit(bit, addr, size)                         \
  for ((bit) = ub_find_first_bit((addr), (size)); (bit) < (size); \
       (bit) = ub_find_next_bit((addr), (size), (bit) + 1))

#ifdef __cplusplus
}
#endif
