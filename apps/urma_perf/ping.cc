// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/ping.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/common/captures.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/json_output.h"
#include "apps/urma_perf/link.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t interval = second;

// Between two questions this thread makes no calls, so the device runs itself.
const ThreadsMode& served_mode() {
  return *std::ranges::find(threads_modes, Threads::served, &ThreadsMode::threads);
}

void sleep_until(int64_t time) {
  const int64_t left = time - now();
  if (left <= 0) return;
  pollfd interrupt{interrupt_descriptor(), POLLIN, 0};
  (void)::poll(&interrupt, 1, static_cast<int>(left / millisecond) + 1);
}

class Pinger {
 public:
  explicit Pinger(const Options& options)
      : options_(options),
        device_text_(options.device.empty() ? device_towards(options.host) : options.device),
        device_(captures_.watch(open_device(device_text_, {served_mode(), options.retransmit,
                                                           options.congestion, options.profile}))) {
  }

  Exit run() {
    say(fmt::format("ping {} over {}: the server program answers a question\n", options_.host,
                    device_text_));
    const int64_t begin = now();
    const uint64_t most = options_.count.value_or(UINT64_MAX);
    for (int64_t next = begin; asked_ < most && !interrupted(); next += interval) {
      sleep_until(next);
      if (interrupted()) break;
      ask();
      next = std::max(next, now() - interval);
    }
    link_.reset();
    summary(seconds(now() - begin));
    if (times_.count() > 0) return Exit::ok;
    if (asked_ == 0) return Exit::interrupted;
    throw Failure(Exit::error, why_);
  }

 private:
  void ask() {
    ++asked_;
    try {
      if (!link_) {
        Service service = service_for("--ping");
        service.reports = asked_ > 1;
        link_ = std::make_unique<Link>(device_, options_.host, service,
                                       options_.speaks.value_or(protocol));
      }
      const int64_t begin = now();
      link_->tell("ping", nullptr, interval);
      const double us = static_cast<double>(now() - begin) / microsecond;
      times_.add(us);
      say(fmt::format("answer {}: {:.1f} us\n", asked_, us));
    } catch (const Failure& failure) {
      // A wrong host or another version does not become right.
      if (failure.exit() != Exit::peer_lost) throw;
      why_ = failure.what();
      link_.reset();
      say(fmt::format("answer {}: none\n", asked_));
    }
  }

  void summary(double took) const {
    const uint64_t answered = times_.count();
    const double lost =
        asked_ == 0 ? 0
                    : 100 * static_cast<double>(asked_ - answered) / static_cast<double>(asked_);
    if (options_.form == Options::Form::json) {
      return print_json({{"schema", json_schema},
                         {"host", options_.host},
                         {"device", device_text_},
                         {"asked", asked_},
                         {"answered", answered},
                         {"lost_percent", lost},
                         {"seconds", took},
                         {"min_us", times_.least_us()},
                         {"mean_us", times_.mean_us()},
                         {"max_us", times_.most_us()},
                         {"deviation_us", times_.deviation_us()}});
    }
    print(fmt::format("--- {}: {} asked, {} answered, {:.0f} % lost, {:.1f} s\n", options_.host,
                      asked_, answered, lost, took));
    if (answered == 0) return;
    print(fmt::format("round trip min/avg/max/mdev = {:.1f}/{:.1f}/{:.1f}/{:.1f} us\n",
                      times_.least_us(), times_.mean_us(), times_.most_us(),
                      times_.deviation_us()));
  }

  void say(const std::string& line) const {
    if (options_.form != Options::Form::json) print(line);
  }

  const Options& options_;
  const std::string device_text_;
  apps::Captures captures_{"urma_perf"};  // destroyed after the device
  Device device_;
  std::unique_ptr<Link> link_;
  RoundTrips times_;
  uint64_t asked_ = 0;
  std::string why_;  // why the latest question was not answered
};

}  // namespace

// Welford's method, which does not lose digits.
void RoundTrips::add(double us) {
  least_ = count_ == 0 ? us : std::min(least_, us);
  most_ = std::max(most_, us);
  ++count_;
  const double before = us - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (us - mean_);
}

double RoundTrips::mean_us() const { return mean_; }

double RoundTrips::deviation_us() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

Exit ping(const Options& options) { return Pinger(options).run(); }

}  // namespace urma::apps::perf
