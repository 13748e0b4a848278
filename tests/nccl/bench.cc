// SPDX-License-Identifier: Apache-2.0
// Measures the plugin between two processes, as NCCL's proxies use it:
//
//   nccl_bench PLUGIN [SECONDS]       on the device of URMA_NCCL_DEVICE
//
// Prints half of the round trip of 8 bytes, and the rate of messages of 512 KiB, of which 8 are
// outstanding, in one direction. urma_perf measures the same works without the plugin:
//
//   urma_perf --self send_lat --size 8
//   urma_perf --self write_bw --private --size 512K --depth 8
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include <sys/socket.h>

#include "tests/nccl/peer.h"
#include "tests/umdk/check.h"

namespace urma::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t chunk = 512 << 10;
constexpr size_t steps = 8;  // NCCL_STEPS
constexpr size_t memory_bytes = steps * chunk;
constexpr size_t round_trips = 1000;  // in one measurement

void wait(const Rank& rank, void* request) {
  int done = 0;
  while (done == 0) REQUIRE(rank.net.test(request, &done, nullptr) == Code::success);
}

// A receive is posted ahead of its data, as NCCL does.
void bounce(Rank& rank, bool first, size_t times) {
  void* receiving = rank.receive(8);
  for (size_t i = 0; i < times; ++i) {
    void* const next = i + 1 < times ? rank.receive(8) : nullptr;
    if (!first) wait(rank, receiving);
    void* const sending = rank.send(8);
    if (first) wait(rank, receiving);
    wait(rank, sending);
    receiving = next;
  }
}

// `slide` starts the transfer of a step, up to 8 of which are outstanding.
template <class Start>
void slide(Rank& rank, size_t times, Start start) {
  std::deque<void*> outstanding;
  for (size_t i = 0; i < times; ++i) {
    if (outstanding.size() == steps) {
      wait(rank, outstanding.front());
      outstanding.pop_front();
    }
    outstanding.push_back(start(i % steps));
  }
  for (void* const one : outstanding) wait(rank, one);
}

// The other rank does what this one asks over the socket: a number of messages, and which.
struct Order {
  size_t times = 0;  // 0: end
  bool small = false;
};

int serve(const std::string& plugin, int channel) {
  Rank rank(plugin, channel, memory_bytes);
  Order order;
  while (recv(channel, &order, sizeof order, MSG_WAITALL) == sizeof order && order.times > 0) {
    if (order.small) {
      bounce(rank, false, order.times);
    } else {
      slide(rank, order.times, [&](size_t step) { return rank.receive(chunk, step * chunk); });
      void* const sending = rank.send(0);
      wait(rank, sending);
    }
  }
  return failures;
}

template <class Measure>
double best_time(double seconds, Measure measure) {
  double best = 1e9;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const auto begin = Clock::now();
    measure();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  } while (Clock::now() < until);
  return best;
}

int measure(const std::string& plugin, double seconds) {
  Peer peer("serve", plugin);
  {
    Rank rank(plugin, peer.channel(), memory_bytes);
    const auto ask = [&](const Order& order) {
      REQUIRE(::send(peer.channel(), &order, sizeof order, 0) == sizeof order);
    };
    const double small = best_time(seconds, [&] {
      ask({round_trips, true});
      bounce(rank, true, round_trips);
    });
    const size_t times = 200;
    const double large = best_time(seconds, [&] {
      ask({times, false});
      void* const ended = rank.receive(0);
      slide(rank, times, [&](size_t step) { return rank.send(chunk, step * chunk); });
      wait(rank, ended);
    });
    ask({0, false});
    std::printf("8 B, half a round trip: %.3f us\n", small / round_trips / 2 * 1e6);
    std::printf("512 KiB, 8 outstanding: %.2f GB/s\n", times * chunk / large / 1e9);
    CHECK(Net::warnings().empty());
  }
  CHECK(peer.wait() == 0);
  return failures;
}

}  // namespace
}  // namespace urma::test

int main(int count, char** words) {
  using namespace urma::test;
  if (count == 4 && std::strcmp(words[1], "serve") == 0)
    return serve(words[2], std::atoi(words[3]));
  if (count == 2 || count == 3) return measure(words[1], count == 3 ? std::atof(words[2]) : 1);
  std::fprintf(stderr, "usage: nccl_bench PLUGIN [SECONDS]\n");
  return 2;
}
