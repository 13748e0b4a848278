// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "congestion/arithmetic.h"
#include "congestion/controller.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::ControllerKind;
using congestion::Feedback;

// The same events for each controller, as those of one channel: eight phases of forty events each.
class ChannelEvents {
 public:
  explicit ChannelEvents(const ControllerKind& kind)
      : kind_(kind),
        controller_(*kind.make(storage_.data(), {.packet_bytes = 4096,
                                                 .limit_bytes = 1 << 20,
                                                 .bytes_per_second = 12.5e9,
                                                 .base_rtt = 8us,
                                                 .seed = 1})) {}
  ~ChannelEvents() { controller_.~Controller(); }

  // Returns a line for each tenth event: the window, and the time until the next departure.
  std::string curve() {
    std::ostringstream out;
    for (int event = 0; event < 320; ++event) {
      now_ += 1us;
      controller_.request({.now = now_,
                           .number = static_cast<uint64_t>(event),
                           .bytes = 4096,
                           .again = event % 40 == 39,
                           .inflight_bytes = 4096});
      happen(event / 40, event % 40);
      if (event % 10 != 9) continue;
      const congestion::Allowance allowance = controller_.allowance(now_);
      const Duration wait = std::max(allowance.not_before, now_) - now_;
      out << kind_.name << ' ' << event << ' ' << allowance.window_bytes << ' ' << wait.count()
          << '\n';
    }
    return out.str();
  }

 private:
  void happen(int phase, int event) {
    switch (phase) {
      case 0:  // all is granted
        return acknowledge(8us, {.increase = true, .switched = true, .hint = 128});
      case 1: {  // a port names 10 Gb/s and marks each fourth packet
        const bool marked = event % 4 == 0;
        return acknowledge(10us, {.marked_packets = marked,
                                  .switched = true,
                                  .hint = static_cast<uint16_t>(marked ? 160 : 0),
                                  .switch_queue = congestion::queue_code(2e-6)});
      }
      case 2:  // a queue that no switch reports, then none
        return acknowledge(event < 20 ? 24us : 8us,
                           {.increase = true, .switched = true, .hint = 128});
      case 3:  // the switches fall silent
        return acknowledge(8us, {});
      case 4:  // ECN marks
        return acknowledge(9us, {.marked_bytes = event % 3 == 0 ? 4096u : 0u});
      case 5:  // losses, one of which proves spurious
        if (event % 10 == 5) return lose(event == 35);
        if (event == 37) return controller_.handle(congestion::Spurious{.now = now_});
        return acknowledge(8us, {});
      case 6:  // notifications
        if (event % 10 == 0) {
          return controller_.handle(
              congestion::Notified{.now = now_, .rtt = 8us, .severe = true, .last_hop = true});
        }
        return acknowledge(8us, {});
      default:  // recovery
        now_ += 20us;
        return acknowledge(8us, {.increase = true, .switched = true, .hint = 128});
    }
  }

  void acknowledge(Duration sample, const Feedback& feedback) {
    controller_.handle(congestion::Acknowledged{.now = now_,
                                                .rtt = 8us,
                                                .bytes = 4096,
                                                .inflight_bytes = controller_.window_bytes(),
                                                .sample = sample,
                                                .least_rtt = 8us,
                                                .feedback = &feedback});
  }
  void lose(bool timed_out) {
    controller_.handle(
        congestion::Lost{.now = now_, .rtt = 8us, .bytes = 4096, .timed_out = timed_out});
  }

  alignas(8) std::array<std::byte, congestion::Controller::storage> storage_;
  const ControllerKind& kind_;
  congestion::Controller& controller_;
  Time now_{1s};
};

std::string all_curves() {
  std::string all;
  for (const ControllerKind& kind : congestion::controllers()) all += ChannelEvents(kind).curve();
  return all;
}

TEST_CASE("each controller has the window that curves.txt records after the same events") {
  std::ifstream file(URMA_CURVES);
  std::ostringstream recorded;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') recorded << line << '\n';
  }
  CHECK(all_curves() == recorded.str());
}

TEST_CASE("prints the curves, to record them", "[.record]") {
  std::fputs(all_curves().c_str(), stdout);
}

}  // namespace
}  // namespace urma::test
