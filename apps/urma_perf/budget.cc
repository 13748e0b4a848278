// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/budget.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/result.h"

namespace urma::apps::perf {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view anywhere_here = "udp:127.0.0.1";
constexpr std::string_view four_here =
    "paths():udp:127.0.0.1+udp:127.0.0.1+udp:127.0.0.1+udp:127.0.0.1";
// The bound on the memory of 10 000 peers with four paths each.
constexpr double many_peers_bytes = 24e6;
constexpr double many_peers = 10'000;

// Returns how many bytes of a process are in memory.
double resident_bytes(pid_t process) {
  std::FILE* file = std::fopen(fmt::format("/proc/{}/statm", process).c_str(), "r");
  unsigned long all = 0, resident = 0;
  const bool read = file != nullptr && std::fscanf(file, "%lu %lu", &all, &resident) == 2;
  if (file != nullptr) std::fclose(file);
  if (!read) {
    throw Failure(Exit::error,
                  "budget: /proc does not report how much memory a process uses. Fix: mount /proc");
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Returns whether a page of new memory that is only read takes memory, as on kernels without a
// shared page of zeros. Tables in which a peer is looked up, and not found, then take some.
bool reads_take_memory() {
  constexpr size_t pages = 256;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const double before = resident_bytes(getpid());
  for (size_t i = 0; i < pages; ++i) {
    (void)static_cast<const volatile char*>(memory)[i * page];
  }
  const double more = resident_bytes(getpid()) - before;
  munmap(memory, pages * page);
  return more > static_cast<double>(pages * page) / 2;
}

// Prints one line for each figure, and returns whether its bound holds.
class BoundsReport {
 public:
  void header(std::string_view text) { print(fmt::format("{}\n", text)); }
  void at_most(std::string_view what, double is, double bound, std::string_view unit) {
    line(what, is, bound, unit, "at most", is <= bound);
  }
  void at_least(std::string_view what, double is, double bound, std::string_view unit) {
    line(what, is, bound, unit, "at least", is >= bound);
  }
  void note(std::string_view what, double is, std::string_view unit) {
    print(fmt::format("  {:<52} {:>9.2f} {}\n", what, is, unit));
  }
  void part(double bytes, std::string_view what) {
    print(fmt::format("    {:8.0f} B  {}\n", bytes, what));
  }
  Exit exit() const { return missed_ ? Exit::threshold : Exit::ok; }

 private:
  void line(std::string_view what, double is, double bound, std::string_view unit,
            std::string_view which, bool holds) {
    print(fmt::format("  {:<52} {:>9.2f} {:<5} {} {:g}{}\n", what, is, unit, which, bound,
                      holds ? "" : "   MISSED"));
    std::fflush(stdout);
    missed_ = missed_ || !holds;
  }
  bool missed_ = false;
};

double sum_of(std::string_view object, BoundsReport* report = nullptr) {
  double sum = 0;
  for (const BudgetPart& part : Device::budget()) {
    if (part.object != object) continue;
    sum += part.bytes;
    if (report != nullptr) report->part(part.bytes, part.part);
  }
  return sum;
}

void show_sums(BoundsReport& report) {
  report.header("By the sum of their parts");
  for (const auto& [object, bound] : {std::pair("Jetty", 320.0),
                                      {"channel", 512.0},
                                      {"peer", 400.0},
                                      {"packet in flight", 25.0}}) {
    report.at_most(fmt::format("{}, idle", object), sum_of(object), bound, "B");
    sum_of(object, &report);
  }
  // A peer has one channel, over all its paths.
  report.note("paths of a peer that has two to four, idle", sum_of("paths"), "B");
  sum_of("paths", &report);
  report.note("paths from the fifth on, more", sum_of("paths from the fifth on"), "B");
  const double each = sum_of("peer") + sum_of("channel") + sum_of("paths");
  report.at_most("10 000 peers with 4 paths each, idle", many_peers * each / 1e6,
                 many_peers_bytes / 1e6, "MB");
}

// ---- Jetties

double nanoseconds_each(int64_t since, size_t count) {
  return static_cast<double>(now() - since) / static_cast<double>(count);
}

void must_post(Jetty& jetty, const Work& work) {
  if (jetty.post(work) == 1) return;
  throw Failure(Exit::error,
                "budget: a work was not accepted. Fix: report this as a fault of liburma");
}

void drain(Jetty& jetty, size_t count) {
  std::array<Completion, 64> done;
  const int64_t until = now() + 10 * second;
  while (count > 0) {
    const size_t polled = jetty.poll(done);
    for (const Completion& completion : std::span(done).first(polled)) {
      if (!completion.ok()) {
        throw Failure(Exit::error,
                      fmt::format("budget: a write to a device of this process ended as {}. Fix: "
                                  "report this as a fault of liburma",
                                  name(completion.status)));
      }
    }
    count -= polled;
    if (now() > until) {
      throw Failure(Exit::error,
                    "budget: a write did not complete. Fix: report this as a fault of liburma");
    }
  }
}

// Measures the minimum cost of a post to a random Jetty: one dependent load of a cache line, from
// as much memory as that many Jetties take. A post needs three such loads: the application's
// object, the address of its queues, and the queues.
double random_line_ns(size_t many) {
  constexpr size_t apart = 1024 / sizeof(size_t);
  constexpr size_t steps = 50'000;
  std::vector<size_t> order(many), table(many * apart);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
  for (size_t i = 0; i < many; ++i) table[order[i] * apart] = order[(i + 1) % many] * apart;
  const int64_t since = now();
  size_t at = 0;
  for (size_t i = 0; i < steps; ++i) at = table[at];
  const double each = nanoseconds_each(since, steps);
  // The result is used, so that the compiler keeps the loop.
  return at == SIZE_MAX ? 0 : each;
}

// Measures a post, which touches several cache lines: to one Jetty repeatedly, and to a random one
// of many.
void measure_posts(BoundsReport& report, Device& device, std::vector<Jetty>& jetties, bool gate) {
  constexpr size_t burst = least_budget_jetties;  // posts, each to another Jetty
  constexpr size_t rounds = 200;
  const size_t many = std::min<size_t>(jetties.size(), 65'536);
  Segment memory = must(device.allocate(4096), "budget: memory");
  const RemoteSegment there = memory.local();
  const std::array<std::byte, 8> bytes{};
  const Work work = write(bytes, there);
  Jetty hot = must(device.jetty({.berths = burst}), "budget: a Jetty");
  std::mt19937_64 order(1);
  std::shuffle(jetties.begin(), jetties.end(), order);
  const auto post_to_some = [&](size_t first) {
    const int64_t since = now();
    for (size_t i = 0; i < burst; ++i) must_post(jetties[(first + i) % many], work);
    const double each = nanoseconds_each(since, burst);
    for (size_t i = 0; i < burst; ++i) drain(jetties[(first + i) % many], 1);
    return each;
  };
  // From here on the rings of these Jetties are in use.
  for (size_t first = 0; first < many; first += burst) post_to_some(first);
  std::vector<double> to_hot, to_random;
  for (size_t round = 0; round < rounds; ++round) {
    const int64_t since = now();
    for (size_t i = 0; i < burst; ++i) must_post(hot, work);
    to_hot.push_back(nanoseconds_each(since, burst));
    drain(hot, burst);
    to_random.push_back(post_to_some(round * burst));
  }
  print(fmt::format("  {:<52} {:>9.2f} ns\n", "a post to a Jetty that is hot", median(to_hot)));
  const double more = median(to_random) - median(to_hot);
  print(fmt::format("  {:<52} {:>9.2f} ns\n",
                    "one random line that another one names, without liburma",
                    random_line_ns(many)));
  report.at_most("more, to a random one of all those in use", more, gate ? 60 : more, "ns");
}

// With `gate`, the speed is checked, too.
void measure_jetties(BoundsReport& report, uint32_t count, bool gate) {
  report.header(fmt::format("Measured: {} Jetties of one device", count));
  // One Jetty more than the counted ones, which is used all the time.
  Device device =
      must(open(anywhere_here, {.threads = Threads::inlined, .limits = {.jetties = count + 2}}),
           "budget: a device");
  std::vector<Jetty> jetties;
  jetties.reserve(count);
  Jetty first = must(device.jetty({.berths = 4}), "budget: a Jetty");
  const double before = resident_bytes(getpid());
  const int64_t since = now();
  for (uint32_t i = 0; i < count; ++i) {
    jetties.push_back(must(device.jetty({.berths = 4}), "budget: a Jetty"));
  }
  const double each = nanoseconds_each(since, count);
  // The table of Jetty ids is allocated for the largest possible number.
  constexpr double table = 4 << 20;
  const double bound = gate ? 320 : 320 + table / count;
  report.at_most("an idle Jetty", (resident_bytes(getpid()) - before) / count, bound, "B");
  report.at_least("made, in a second", 1000 / each, gate ? 0.5 : 0, "M");
  measure_posts(report, device, jetties, gate);
  const int64_t ending = now();
  jetties.clear();
  print(fmt::format("  {:<52} {:>9.2f} M\n", "ended, in a second",
                    1000 / nanoseconds_each(ending, count)));
}

// ---- peers

// Another process, whose memory is measured. It ends when this process does.
class Owner {
 public:
  Owner(std::string_view device, uint32_t peers) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) {
      throw Failure(Exit::error,
                    "budget: a pipe could not be made. Fix: allow more open files (ulimit -n)");
    }
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(pipe_ends[0]);
      serve(device, pipe_ends[1], peers);
    }
    ::close(pipe_ends[1]);
    std::array<char, 1024> text{};
    const ssize_t got = process_ < 0 ? -1 : ::read(pipe_ends[0], text.data(), text.size());
    ::close(pipe_ends[0]);
    if (got <= 0) {
      throw Failure(Exit::error,
                    "budget: the process whose memory is measured could not be started, or ended "
                    "early. Fix: retry");
    }
    line_.assign(text.data(), static_cast<size_t>(got));
  }
  ~Owner() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Owner(const Owner&) = delete;

  const std::string& line() const { return line_; }
  double resident() const { return resident_bytes(process_); }

 private:
  [[noreturn]] static void serve(std::string_view at, int tell, uint32_t peers) {
    auto device =
        open(at, {.threads = Threads::served, .limits = {.peers = peers}, .observable = false});
    if (!device) _exit(1);
    auto memory = device->allocate(4096);
    if (!memory) _exit(1);
    const std::string line = memory->descriptor();
    if (::write(tell, line.data(), line.size()) < 0) _exit(1);
    for (;;) pause();
  }

  pid_t process_ = -1;
  std::string line_;
};

// Opens a device that the owner takes for a process of its own.
Device meet(std::string_view at, const std::string& line) {
  Device device = must(open(at, {.threads = Threads::inlined,
                                 .limits = {.jetties = 2, .peers = 4, .segments = 2},
                                 .observable = false}),
                       "budget: a device");
  const Imported there = must(device.import(line), "budget: the other process's memory");
  Jetty jetty = must(device.jetty({.berths = 1}), "budget: a Jetty");
  const std::array<std::byte, 8> bytes{};
  must_post(jetty, write(bytes, there.segment));
  drain(jetty, 1);
  // Runs the engine until the owner has its acknowledgement, too.
  std::array<Completion, 1> none;
  const int64_t begun = now();
  while (now() < begun + 2 * millisecond ||
         (now() < begun + second && must(device.stats(), "budget").acks_sent == 0)) {
    (void)jetty.poll(none);
  }
  return device;
}

uint32_t descriptors_allowed() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur, 65'536));
}

// The first peers take the memory that all peers share.
constexpr uint32_t shared_by_first = 64;

struct PeersToMeasure {
  std::string_view device;  // of the peers, and of the owner
  std::string_view what;
  uint32_t most = 0;
  uint32_t descriptors_each = 0;
  double bound_bytes = 0;
};

// Returns how many packets these devices and their peer have sent again.
uint64_t sent_again(std::vector<Device>& devices) {
  uint64_t packets = 0;
  for (Device& device : devices) {
    const Statistics counters = must(device.stats(), "budget");
    packets += counters.retransmitted + counters.duplicates;
  }
  return packets;
}

struct PeerMemory {
  double bytes_each = 0;
  uint64_t sent_again = 0;  // packets, while it was measured
};

PeerMemory memory_of_peers(const PeersToMeasure& peers, uint32_t count) {
  const Owner owner(peers.device, count + 2 * shared_by_first);
  std::vector<Device> devices;
  for (uint32_t i = 0; i < shared_by_first; ++i)
    devices.push_back(meet(peers.device, owner.line()));
  usleep(100'000);
  const double before = owner.resident();
  for (uint32_t i = 0; i < count; ++i) devices.push_back(meet(peers.device, owner.line()));
  usleep(100'000);
  return {.bytes_each = (owner.resident() - before) / count, .sent_again = sent_again(devices)};
}

// A channel keeps the memory that it once needed to send packets again. On a busy machine packets
// are sent again although none was lost, and then the memory of a channel is measured again.
void measure_peers(BoundsReport& report, const PeersToMeasure& peers) {
  constexpr int most_tries = 3;
  const uint32_t count =
      std::min(peers.most, descriptors_allowed() / peers.descriptors_each - 2 * shared_by_first);
  report.header(fmt::format("Measured: {} peers of another process, with a channel each", count));
  const bool judged = !reads_take_memory();
  PeerMemory found;
  for (int tries = 0; tries < most_tries; ++tries) {
    found = memory_of_peers(peers, count);
    if (!judged || found.sent_again == 0 || found.bytes_each <= peers.bound_bytes) break;
  }
  if (!judged) {
    report.note(peers.what, found.bytes_each, "B, not judged: this kernel gives memory to reads");
    return;
  }
  report.at_most(peers.what, found.bytes_each, peers.bound_bytes, "B");
  if (found.bytes_each > peers.bound_bytes && found.sent_again > 0) {
    report.note("packets that were sent again meanwhile, which takes memory",
                static_cast<double>(found.sent_again), "");
  }
}

}  // namespace

Exit budget(const Options& options) {
  const apps::EndsAtOnce on_interrupt;
  constexpr uint32_t usual_jetties =
      1'000'000 - 2;  // 1 000 000 less two further Jetties of the device
  const uint32_t jetties = options.jetties.front() > 1 ? options.jetties.front() : usual_jetties;
  BoundsReport report;
  measure_jetties(report, jetties, jetties == usual_jetties);
  const uint32_t peers = jetties < usual_jetties ? 256 : 1000;
  measure_peers(report, {.device = anywhere_here,
                         .what = "a peer and its idle channel",
                         .most = peers,
                         .descriptors_each = 4,
                         .bound_bytes = 400 + 512});
  measure_peers(report, {.device = four_here,
                         .what = "a peer with 4 paths and its idle channel",
                         .most = peers,
                         .descriptors_each = 12,
                         .bound_bytes = many_peers_bytes / many_peers});
  show_sums(report);
  return report.exit();
}

}  // namespace urma::apps::perf
