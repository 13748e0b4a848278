// SPDX-License-Identifier: Apache-2.0
// Prints the table of docs/performance.md about the cost of each order; bench/order inserts it.
// Time is virtual, so the figures are the same on each machine: a line of 100 Gb/s with a round
// trip of 20 us, and 64 outstanding works of 64 bytes. Processor time is not included.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "drivers/sim/network.h"
#include "urma/urma.hpp"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t depth = 64;
constexpr uint32_t bytes_of_work = 64;
constexpr uint32_t works_of_row = 20'000;

struct Row {
  const char* name;
  Order order;
  ServiceMode mode;
  uint32_t strong_every = 0;  // if not 0, one in this many works is strong and the others are
                              // relaxed; if 0, all have `order`
};
constexpr Row rows[] = {
    {"none", Order::none, ServiceMode::automatic},
    {"relaxed", Order::relaxed, ServiceMode::target},
    {"relaxed, each 8th strong: target", Order::relaxed, ServiceMode::target, 8},
    {"relaxed, each 8th strong: initiator", Order::relaxed, ServiceMode::initiator, 8},
    {"strong, or a chain: target", Order::strong, ServiceMode::target},
    {"strong, or a chain: initiator", Order::strong, ServiceMode::initiator},
};

struct Figures {
  double rate = 0;  // executed works, in millions per second
  double p99_us = 0;
};

class Run {
 public:
  Run(const Row& row, const std::string& loss, int number)
      : row_(row),
        name_("rates" + std::to_string(number)),
        network_(drivers::sim::Network::named(name_, 1)),
        here_(open(line(loss)).value()),
        there_(open(line(loss)).value()),
        memory_(1 << 20),
        segment_(there_.register_memory(memory_).value()),
        jetty_(here_.jetty({.berths = depth, .mode = row.mode}).value()),
        target_(here_.import(segment_.descriptor()).value().segment) {
    post(0);  // makes the channel and the sequence context
    while (jetty_.wait(1s).empty()) {
    }
  }

  Figures figures() {
    const Time begun = network_->now();
    posted_.resize(works_of_row);
    for (uint32_t next = 0, ended = 0; ended < works_of_row;) {
      for (; next < works_of_row && post(next); ++next) posted_[next] = network_->now();
      std::array<Completion, depth> out;
      const size_t count = jetty_.poll(out);
      for (const Completion& each : std::span(out).first(count)) {
        if (!each.ok()) throw std::runtime_error(std::string(name(each.status)));
        times_.push_back(network_->now() - posted_[each.tag]);
        ++ended;
      }
      if (count == 0) network_->step(network_->now() + 1us);
    }
    const auto seconds = std::chrono::duration<double>(network_->now() - begun).count();
    const size_t at = times_.size() * 99 / 100;
    std::ranges::nth_element(times_, times_.begin() + static_cast<ptrdiff_t>(at));
    return {.rate = works_of_row / seconds / 1e6,
            .p99_us = static_cast<double>(times_[at].count()) / 1000};
  }

 private:
  std::string line(const std::string& loss) const {
    return "sim:" + name_ + "?delay=10us&rate=100Gbit&mtu=4096&loss=" + loss;
  }
  bool post(uint32_t number) {
    Work work = write(source_, target_, uint64_t{number % depth} * bytes_of_work);
    const bool strong = row_.strong_every != 0 && number % row_.strong_every == 0;
    work.order = strong ? Order::strong : row_.order;
    return jetty_.post(work.tag(number)) == 1;
  }
  const Row& row_;
  std::string name_;
  std::shared_ptr<drivers::sim::Network> network_;
  Device here_;
  Device there_;
  std::vector<std::byte> memory_;
  std::array<std::byte, bytes_of_work> source_{};
  Segment segment_;
  Jetty jetty_;
  RemoteSegment target_;
  std::vector<Time> posted_;
  std::vector<Duration> times_;
};

void print_table() {
  std::printf(
      "| order | rate, no loss | p99 | rate, loss 0.1 %% | p99 | rate, loss 1 %% | p99 |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  int number = 0;
  for (const Row& row : rows) {
    std::printf("| %s |", row.name);
    for (const char* loss : {"0%", "0.1%", "1%"}) {
      const Figures figures = Run(row, loss, number++).figures();
      std::printf(" %.2f M/s | %.0f us |", figures.rate, figures.p99_us);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace urma::test

int main() {
  try {
    urma::test::print_table();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "order_rates: %s\n", e.what());
    return 1;
  }
}
