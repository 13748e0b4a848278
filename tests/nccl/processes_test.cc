// SPDX-License-Identifier: Apache-2.0
// Two processes: ranks that exchange data in both directions, and one that is killed in the middle,
// several times.
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/nccl/peer.h"
#include "tests/umdk/check.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t chunk = 100'000;
constexpr unsigned messages = 200;
constexpr int kills = 6;  // on each device
// URMA_NCCL_TIMEOUT is 1 s by default. Busy machines need more than that until they notice.
constexpr auto bound = 5s;

size_t size_of(unsigned message) { return message * 977 % (chunk + 1); }

// Both ranks send and receive at the same time.
int exchange(const std::string& plugin, int channel, unsigned first) {
  {
    Rank rank(plugin, channel, chunk);
    for (unsigned i = 0; i < messages; ++i) {
      fill(rank.out, first + i);
      void* const receiving = rank.receive(chunk);
      void* const sending = rank.send(size_of(i));
      const Ended arrived = finish(rank.net, receiving);
      CHECK(arrived.done && arrived.bytes[0] == static_cast<int>(size_of(i)));
      CHECK(is_filled(rank.in.data(), size_of(i), 1 - first + i));
      CHECK(finish(rank.net, sending).done);
    }
    // No rank closes its connection before the other has received everything.
    char byte = 0;
    CHECK(::send(channel, &byte, 1, MSG_NOSIGNAL) == 1 && recv(channel, &byte, 1, 0) == 1);
  }
  CHECK(Net::warnings().empty());
  return failures;
}

// Echoes what arrives until it is killed, or answers no longer after 20 messages.
int echo(const std::string& plugin, int channel) {
  Rank rank(plugin, channel, chunk);
  for (unsigned i = 0;; ++i) {
    const Ended arrived = finish(rank.net, rank.receive(chunk), 60s);
    REQUIRE(arrived.done);
    REQUIRE(finish(rank.net, rank.send(static_cast<size_t>(arrived.bytes[0]))).done);
  }
}

// How often the killed rank is in the middle of what.
enum class Moment { while_receiving, while_sending, in_both };

void ends_within_the_bound(const Net& net, void* request, Clock::time_point killed) {
  if (request == nullptr) return;
  const Ended ended = finish(net, request, bound);
  // A message that had arrived before the kill is done.
  CHECK(ended.done || ended.code == Code::remote_error || ended.code == Code::system_error);
  CHECK(Clock::now() - killed < bound);
}

// Sends until the link fails. Returns the code with which it failed.
Code send_until_failure(Rank& rank, Clock::time_point until) {
  Code code = Code::success;
  while (code == Code::success && Clock::now() < until) {
    void* request = nullptr;
    code = rank.net.isend(rank.connection.pair.sender, rank.out.data(), chunk, 1, rank.out_memory,
                          &request);
    if (request != nullptr) code = finish(rank.net, request, bound).code;
  }
  return code;
}

void survives_a_killed_peer(const std::string& plugin, Moment moment) {
  Peer peer("echo", plugin);
  {
    Rank rank(plugin, peer.channel(), chunk);
    for (int i = 0; i < 20; ++i) {
      void* const receiving = rank.receive(chunk);
      void* const sending = rank.send(chunk);
      CHECK(finish(rank.net, receiving).done && finish(rank.net, sending).done);
    }
    // More receives than the peer will fill.
    void* receiving[3] = {};
    void* sending = nullptr;
    if (moment != Moment::while_sending) {
      for (void*& one : receiving) one = rank.receive(chunk);
    }
    if (moment != Moment::while_receiving) sending = rank.send(chunk);
    peer.kill();
    const auto killed = Clock::now();
    for (void* const one : receiving) ends_within_the_bound(rank.net, one, killed);
    ends_within_the_bound(rank.net, sending, killed);
    if (moment != Moment::while_sending) {
      int done = 0;
      CHECK(rank.net.test(receiving[2], &done, nullptr) == Code::remote_error && done == 0);
    }
    // A sender without requests learns it when it sends.
    CHECK(send_until_failure(rank, killed + bound) == Code::remote_error);
    CHECK(!Net::warnings().empty());
  }
}

int run(const std::string& plugin) {
  // Also on machines with few processors.
  setenv("URMA_NCCL_COPIER", "1", 1);
  for (const std::string& device : devices_of_tests()) {
    setenv("URMA_NCCL_DEVICE", device.c_str(), 1);
    setenv("URMA_NCCL_TIMEOUT", "10", 1);  // a busy machine stops processes for seconds
    for (int round = 0; round < 3; ++round) {
      Peer peer("exchange", plugin);
      CHECK(exchange(plugin, peer.channel(), 0) == 0);
      CHECK(peer.wait() == 0);
    }
    unsetenv("URMA_NCCL_TIMEOUT");
    size_t descriptors_before = 0, threads_before = 0;
    double mib_before = 0;
    for (int i = 0; i < kills; ++i) {
      survives_a_killed_peer(plugin, static_cast<Moment>(i % 3));
      if (i == 2) {
        descriptors_before = descriptors();
        threads_before = threads();
        mib_before = resident_mib();
      }
    }
    CHECK(descriptors() == descriptors_before);
    CHECK(threads() == threads_before);
    CHECK(!resident_has_grown(mib_before));
  }
  remove_window();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace urma::test

int main(int count, char** words) {
  using namespace urma::test;
  if (count == 2) return run(words[1]);
  REQUIRE(count == 4);
  const int channel = std::atoi(words[3]);
  if (std::strcmp(words[1], "echo") == 0) return echo(words[2], channel);
  return exchange(words[2], channel, 1);
}
