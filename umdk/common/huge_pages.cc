// SPDX-License-Identifier: Apache-2.0
#include <linux/mman.h>
#include <sys/mman.h>

#include "umdk/include/ub/umdk/urma/ub_util.h"

extern "C" {

void* ub_hugemalloc(size_t i_length, urma_huge_page_size_t hps, void* p_addr_hint) {
  if (i_length == 0) return nullptr;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
  if (hps == UB_HUGE_PAGE_SIZE_2MB) flags |= MAP_HUGE_2MB;
  if (hps == UB_HUGE_PAGE_SIZE_1GB) flags |= MAP_HUGE_1GB;
  void* const memory = mmap(p_addr_hint, i_length, PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int ub_hugefree(void* p_addr, size_t i_length) {
  return p_addr == nullptr ? -EINVAL : munmap(p_addr, i_length);
}

}  // extern "C"
