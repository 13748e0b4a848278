#include "apps/urma_perf/client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "apps/urma_perf/failure.h"

namespace urma::perf {
namespace {

// The device on the address from which this machine talks to the host. Wherever that cannot be
// found out, the import of the host's name says why.
std::string device_towards(const std::string& host) {
  const std::string fallback = "udp:";
  const auto numeric = parse_endpoint(host);
  std::string name = numeric ? to_string(numeric->address) : host.substr(0, host.rfind(':'));
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (host == "localhost" || getaddrinfo(name.c_str(), "4792", &hints, &found) != 0) {
    return fallback;
  }
  const int probe = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage self{};
  socklen_t length = sizeof self;
  // Connecting a datagram socket sends nothing: it asks the routing table.
  const bool known = probe >= 0 && connect(probe, found->ai_addr, found->ai_addrlen) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&self), &length) == 0;
  if (probe >= 0) close(probe);
  freeaddrinfo(found);
  char text[INET6_ADDRSTRLEN] = "";
  if (!known || getnameinfo(reinterpret_cast<sockaddr*>(&self), length, text, sizeof text, nullptr,
                            0, NI_NUMERICHOST) != 0) {
    return fallback;
  }
  if (self.ss_family == AF_INET6) return fmt::format("udp:[{}]", text);
  return std::string(text).starts_with("127.") ? fallback : fmt::format("udp:{}", text);
}

Device open_device(const std::string& text, bool inlined) {
  return must(urma::open(text, {.threads = inlined ? Threads::inlined : Threads::served,
                                .congestion = {},
                                .limits = {}}),
              "opening the device");
}

std::string command_of(const Options& options) {
  return fmt::format("urma_perf {} ", options.test != nullptr ? options.test->name : "TEST");
}

}  // namespace

Client::Client(const Options& options, const std::string& device, const std::string& host,
               std::vector<int> processors)
    : options_(options),
      device_text_(device.empty() ? device_towards(host) : device),
      processors_(std::move(processors)),
      device_(open_device(device_text_, options.inlined)),
      link_(device_, host, command_of(options), options.speaks.value_or(protocol)) {
  if (!options.verbose) return;
  fmt::print(stderr, "client: {}\nserver: {}\n", description(), server_description());
}

Result Client::run(const Case& what, const Schedule& schedule) {
  Schedule mine = schedule;
  mine.processors = processors_;
  if (options_.verbose) {
    fmt::print(stderr, "{} {}: depth {}, {} Jetties, {} threads, {}, {} rounds of {:.3f} s\n",
               what.test->name, size_text(what.bytes), what.depth, what.jetties, mine.threads,
               mine.inlined ? "inlined" : "served", mine.rounds, seconds(mine.round_time));
  }
  Result result = CaseRun(link_, device_, what, mine).run();
  result.device = device_text_;
  if (!options_.verbose) return result;
  for (const Round& round : result.rounds) {
    fmt::print(stderr,
               "  {:.3f} s: {} messages, {:.0f}/s, p50 {:.2f} us, limit {:.4g}, x {:.2f}, "
               "wait {:.1f} %{}\n",
               round.seconds, round.messages, round.messages_per_second, round.p50_us, round.limit,
               round.times_limit, round.waited_percent, round.discarded ? ", discarded" : "");
  }
  return result;
}

Schedule schedule_for(const Options& options) {
  constexpr double default_seconds = 2;
  constexpr int64_t longest_limit = second / 2;
  constexpr int64_t longest_warm_up = second / 5;
  // A count alone is not cut short by the clock.
  const double all = options.seconds.value_or(options.count ? 1e9 : default_seconds);
  const auto time = static_cast<int64_t>(all * 1e9 / options.rounds);
  Schedule schedule{.inlined = options.inlined,
                    .threads = options.threads,
                    .processors = {},
                    .rounds = options.rounds,
                    .most_rounds = 2 * options.rounds,
                    .round_time = time,
                    .limit_time = std::min(time, longest_limit),
                    .warm_up = std::min(time / 2, longest_warm_up)};
  if (options.count) {
    schedule.round_count = std::max<uint64_t>(*options.count / options.rounds, 1);
  }
  return schedule;
}

}  // namespace urma::perf
