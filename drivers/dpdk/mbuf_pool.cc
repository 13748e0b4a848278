// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/mbuf_pool.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
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

// Returns null if there is no memory; rte_errno then has the reason.
rte_mempool* make_pool(const char* name, uint32_t count, uint16_t room, bool dense) {
  if (!dense) return rte_pktmbuf_pool_create(name, count, cached, 0, room, SOCKET_ID_ANY);
  rte_mempool* const pool = rte_mempool_create_empty(
      name, count, static_cast<unsigned>(sizeof(rte_mbuf) + room), cached,
      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (pool == nullptr) return nullptr;
  rte_pktmbuf_pool_private about{};
  about.mbuf_data_room_size = room;
  bool made = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) == 0;
  rte_pktmbuf_pool_init(pool, &about);
  made = made && rte_mempool_populate_default(pool) >= 0;
  if (!made) {
    rte_mempool_free(pool);
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

// Returns what gives pools more memory.
std::string cure_for_memory() {
  const std::string more = rte_eal_has_hugepages() != 0
                               ? "more huge pages (sysctl vm.nr_hugepages), or none: eal=--no-huge"
                               : "more memory for EAL, as in eal=-m 2048";
  return more + ", or fewer devices in this process";
}

uint64_t missing_in(const rte_mempool* pool) { return pool->size - rte_mempool_avail_count(pool); }

}  // namespace

Result<MbufPool> MbufPool::make(const Shape& shape) {
  static std::atomic<unsigned> number{0};
  missing();
  const std::string name = "urma_" + std::to_string(number++);
  // A pool is densest with a power of two less one.
  uint32_t size = 1;
  while (size - 1 < shape.count) size *= 2;
  const auto room = static_cast<uint16_t>(shape.room + RTE_PKTMBUF_HEADROOM);
  rte_mempool* const pool = make_pool(name.c_str(), size - 1, room, shape.dense);
  if (pool != nullptr) return MbufPool(pool);
  return Error{Status::no_resources, "dpdk: no memory for " + std::to_string(size - 1) +
                                         " packet buffers of " + std::to_string(shape.room) +
                                         " bytes: " + rte_strerror(rte_errno) +
                                         ". Fix: " + cure_for_memory()};
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
