// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/limit.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "apps/common/failure.h"
#include "apps/urma_perf/raw_udp.h"
#include "base/crc32.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

// One side of a case, with its own device.
struct End {
  End(const Case& what, Place place)
      : device(must(open("udp:", {.threads = Threads::served, .congestion = {}, .limits = {}}),
                    "a device")),
        completions(must(device.jfc(4096), "a queue")),
        side(device, what, place, std::array{&completions}) {}

  std::unique_ptr<Limit> limit(LimitKind kind, Place place) {
    return make_limit(kind, device, side, place);
  }

  Device device;
  Jfc completions;
  Side side;
};

}  // namespace

TEST_CASE("each limit of each test measures something in each round") {
  constexpr int64_t slice = millisecond;
  for (const LimitKind kind : {LimitKind::sockets, LimitKind::shared_memory}) {
    for (const Test& test : all_tests()) {
      if (test.plan) continue;
      for (const uint64_t bytes : {8, 2000}) {
        CAPTURE(static_cast<int>(kind), std::string(test.name), bytes);
        const Case what{
            .test = &test, .bytes = bytes, .depth = test.bandwidth() ? 16u : 1u, .limit = true};
        End client(what, Place::client);
        End server(what, Place::server);
        const auto ours = client.limit(kind, Place::client);
        const auto theirs = server.limit(kind, Place::server);
        theirs->meet(ours->told());
        ours->meet(theirs->told());
        REQUIRE(!ours->pattern().empty());
        for (int round = 0; round < 2; ++round) {
          theirs->begin();
          std::atomic<bool> over{false};
          std::thread there([&] {
            while (!over) theirs->run(now() + slice);
          });
          ours->begin();
          // On a busy machine it takes many slices until an answer comes.
          const auto done = [&] {
            if (!test.bandwidth()) return ours->round_trips().count() > 2;
            return ours->receives() && ours->tally().bytes > 0;
          };
          const int64_t begin = now();
          const int64_t least = begin + 20 * millisecond;
          while (now() < begin + 10 * second && (now() < least || (!done() && !theirs->receives())))
            ours->run(now() + slice);
          over = true;
          there.join();
          // If the other thread did not get the processor, the sides take turns.
          while (theirs->receives() && theirs->tally().bytes == 0 && now() < begin + 10 * second) {
            ours->run(now() + slice);
            theirs->run(now() + slice);
          }
          if (theirs->receives()) {
            REQUIRE(theirs->tally().bytes_per_second() > 0);
          } else {
            REQUIRE(done());
          }
        }
      }
    }
  }
}

TEST_CASE("both ends of a summed train compute the CRC of each of its datagrams") {
  const Eid address = ipv4(127, 0, 0, 1);
  RawSocket from(address);
  RawSocket to(address);
  to.coalesce();
  from.connect({address, to.port()});
  to.connect({address, from.port()});
  std::vector<std::byte> source(1 << 20);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * i >> 7);
  for (const uint64_t bytes : {1024, 5000, 1 << 20}) {
    for (const bool summed : {false, true}) {
      CAPTURE(bytes, summed);
      const RawPlan plan = raw_plan(bytes, from, summed);
      REQUIRE(plan.train);
      RawSender sender(from, plan, source);
      sender.run(0);  // sends one train
      std::vector<std::byte> landing(1 << 20);
      RawReceiver receiver(to, plan, landing, true);
      const size_t whole = plan.datagrams * plan.datagram_bytes;
      const auto arrived = [&] {
        return std::ranges::equal(std::span(landing).first(whole), std::span(source).first(whole));
      };
      for (int i = 0; i < 1000 && !arrived(); ++i) receiver.run(0);
      REQUIRE(arrived());

      uint32_t expected = 0;
      for (unsigned i = 0; i < plan.datagrams && summed; ++i) {
        const std::byte* const datagram = source.data() + i * plan.datagram_bytes;
        expected ^= crc32_finish(crc32_portable(crc32_start, datagram, plan.datagram_bytes));
      }
      REQUIRE(sender.sum() == expected);
      REQUIRE(receiver.sum() == expected);
      REQUIRE((expected != 0) == summed);
    }
  }
}

}  // namespace urma::apps::perf
