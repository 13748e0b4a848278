#include "drivers/dpdk/mbuf_pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/dpdk/eal_log.h"

namespace urma::drivers::dpdk {
namespace {

constexpr unsigned cached = 256;  // buffers in the cache of each thread

// The pools of closed ports whose buffers have not all come back.
struct Waiting {
  std::mutex mutex;
  std::vector<rte_mempool*> pools;
};
Waiting& waiting() {
  static Waiting& one = *new Waiting;
  return one;
}

uint64_t missing_in(const rte_mempool* pool) { return pool->size - rte_mempool_avail_count(pool); }

}  // namespace

Result<MbufPool> MbufPool::make(uint32_t count, uint32_t room) {
  static std::atomic<unsigned> number{0};
  missing();
  const std::string name = "urma_" + std::to_string(number++);
  // A pool is densest with a power of two less one.
  uint32_t size = 1;
  while (size - 1 < count) size *= 2;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create(name.c_str(), size - 1, cached, 0,
                              static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
  if (pool != nullptr) return MbufPool(pool);
  return Error{Status::no_resources, "dpdk: no memory for " + std::to_string(size - 1) +
                                         " packet buffers of " + std::to_string(room) +
                                         " bytes: " + rte_strerror(rte_errno) +
                                         ". Fix: more memory for EAL, as in eal=-m 2048, or fewer "
                                         "devices in this process"};
}

MbufPool::~MbufPool() {
  if (pool_ == nullptr) return;
  {
    const std::lock_guard lock(waiting().mutex);
    waiting().pools.push_back(pool_);
  }
  missing();
}

uint64_t MbufPool::missing() {
  Waiting& all = waiting();
  const std::lock_guard lock(all.mutex);
  uint64_t sum = 0;
  std::erase_if(all.pools, [&](rte_mempool* pool) {
    const uint64_t away = missing_in(pool);
    sum += away;
    if (away == 0) rte_mempool_free(pool);
    return away == 0;
  });
  return sum;
}

}  // namespace urma::drivers::dpdk
