// SPDX-License-Identifier: Apache-2.0
#include "base/chunk_queue.h"

#include <array>
#include <deque>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

constexpr uint32_t per_chunk = 4;
using Queue = ChunkQueue<uint64_t, per_chunk>;

void require_equal(Queue& queue, Queue::Pool& pool, const std::deque<uint64_t>& model) {
  REQUIRE(queue.size() == model.size());
  REQUIRE(queue.empty() == model.empty());
  if (!model.empty()) {
    REQUIRE(queue.front(pool) == model.front());
    REQUIRE(queue.back(pool) == model.back());
  }
  auto at = queue.begin(pool);
  for (const uint64_t expected : model) {
    REQUIRE(at);
    REQUIRE(*at == expected);
    ++at;
  }
  REQUIRE_FALSE(at);
}

TEST_CASE("queues that share a pool each hold what a deque would") {
  constexpr size_t queues = 5;
  constexpr uint32_t chunks = 12;
  Queue::Pool pool(chunks);
  std::array<Queue, queues> queue;
  std::array<std::deque<uint64_t>, queues> model;
  Prng prng(1);
  uint64_t refused = 0;
  for (uint64_t step = 0; step < 30'000; ++step) {
    const size_t q = prng.below(queues);
    // The load comes in waves, so that the pool becomes full and empty again.
    if (prng.chance(step / 200 % 2 == 0 ? 0.7 : 0.3)) {
      const uint32_t used = pool.size();
      if (queue[q].push(pool, step)) {
        model[q].push_back(step);
        REQUIRE(pool.size() <= used + 1);
      } else {
        REQUIRE(used == chunks);
        ++refused;
      }
    } else if (!model[q].empty()) {
      queue[q].pop(pool);
      model[q].pop_front();
    }
    require_equal(queue[q], pool, model[q]);
    size_t least = 0, most = 0;
    for (const auto& one : model) {
      least += (one.size() + per_chunk - 1) / per_chunk;
      most += one.empty() ? 0 : (one.size() + 2 * per_chunk - 2) / per_chunk;
    }
    REQUIRE(pool.size() >= least);
    REQUIRE(pool.size() <= most);
  }
  CHECK(refused > 100);
  for (size_t q = 0; q < queues; ++q) queue[q].clear(pool);
  CHECK(pool.size() == 0);
}

TEST_CASE("an element of a queue stays where it is until it is popped") {
  Queue::Pool pool(8);
  Queue queue;
  REQUIRE(queue.push(pool, 7));
  const uint64_t* first = &queue.front(pool);
  for (uint64_t i = 0; i < 3 * per_chunk; ++i) REQUIRE(queue.push(pool, i));
  CHECK(&queue.front(pool) == first);
  CHECK(*first == 7);
}

TEST_CASE("a full queue takes another element as soon as one chunk has been emptied") {
  Queue::Pool pool(2);
  Queue queue;
  for (uint64_t i = 0; i < 2 * per_chunk; ++i) REQUIRE(queue.push(pool, i));
  CHECK_FALSE(queue.push(pool, 99));
  CHECK(queue.size() == 2 * per_chunk);
  for (uint64_t i = 0; i < per_chunk; ++i) {
    CHECK_FALSE(queue.push(pool, 99));
    queue.pop(pool);
  }
  CHECK(queue.push(pool, 99));
  CHECK(queue.front(pool) == per_chunk);
  CHECK(queue.back(pool) == 99);
}

TEST_CASE("a queue refuses more elements than it can count, whatever the pool has", "[numbers]") {
  using Bytes = ChunkQueue<uint8_t, 128>;
  Bytes::Pool pool((1 << 24) / 128 + 8);
  Bytes queue;
  uint32_t count = 0;
  while (queue.push(pool, static_cast<uint8_t>(count % 251))) ++count;
  CHECK(queue.size() == count);
  CHECK(count >= (1u << 24) - 256);
  CHECK(count < 1u << 24);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i) {
    wrong += queue.front(pool) != i % 251;
    queue.pop(pool);
  }
  CHECK(wrong == 0);
  CHECK(pool.size() == 0);
}

}  // namespace
}  // namespace urma::test
