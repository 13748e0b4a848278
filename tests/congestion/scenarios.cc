// SPDX-License-Identifier: Apache-2.0
#include "tests/congestion/scenarios.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "congestion/arithmetic.h"
#include "tests/congestion/flows.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::seconds;

constexpr std::string_view all_algorithms[] = {"aimd",   "ldcp",  "dcqcn", "caqm_w",
                                               "caqm_r", "swift", "hpcc",  "rcp"};
constexpr double mtu = Flows::mtu;

// A line and the round trip of the hosts of a star.
struct Link {
  uint64_t bytes_per_second;
  Duration base_rtt;

  double rate() const { return static_cast<double>(bytes_per_second); }
  double bdp() const { return rate() * seconds(base_rtt); }  // bytes
  // Two lines and two switches' cables each way; the packet is sent twice, as is its answer.
  fabric::CableKind cable() const {
    const double sent = 2 * (mtu + Flows::ack_bytes) / rate();
    return {bytes_per_second, congestion::duration_of((seconds(base_rtt) - sent) / 4)};
  }
};
constexpr Link hundred{12'500'000'000, 8us};
constexpr Link four_hundred{50'000'000'000, 4us};
constexpr Link forty{5'000'000'000, 8us};
// A BDP of 146 packets, about that of 100 Gb/s, 12 us and 1 KB in HPCC's publication.
constexpr Link many_packets{50'000'000'000, 12us};

// The ECN marks that an algorithm is made for, scaled to the line.
fabric::Marking marks_for(std::string_view algorithm, const Link& link) {
  const double scale = link.rate() / 3.125e9;  // 25 Gb/s
  if (algorithm == "dcqcn") {
    return {.from_bytes = static_cast<uint64_t>(100e3 * scale),
            .all_bytes = static_cast<uint64_t>(400e3 * scale),
            .most_chance = 0.2};
  }
  if (algorithm == "ldcp") {
    return {.from_bytes = static_cast<uint64_t>(link.bdp() / 3),
            .all_bytes = static_cast<uint64_t>(link.bdp())};
  }
  return {};
}

FlowsOptions options_for(std::string_view algorithm, const Link& link) {
  FlowsOptions options{.algorithm = algorithm};
  options.base_rtt = link.base_rtt;
  options.marking = marks_for(algorithm, link);
  // Loss is aimd's only signal. The lines of all others lose nothing.
  if (algorithm == "aimd") options.queue_bytes = 4 << 20;
  return options;
}

// Senders start within 100 ns, in an order that depends on the seed.
Time start_of(uint32_t seed, uint32_t flow) {
  return Time(1us + Duration(static_cast<int64_t>(congestion::chance_of(seed, flow) * 100)));
}

Time rounds(const Link& link, int64_t count) { return Time(1us + count * link.base_rtt); }

void add_incast(Flows& flows, const Link& link, uint32_t senders, uint64_t bytes, uint32_t seed) {
  for (uint32_t i = 0; i < senders; ++i) {
    flows.add({.from = i + 1,
               .to = 0,
               .bytes_per_second = link.rate(),
               .start = start_of(seed, i),
               .bytes = bytes == 0 ? UINT64_MAX : bytes});
  }
}

struct Shares {
  double sum = 0;  // bytes per second
  double jain = 0;
  double least = 0, most = 0;  // of the mean
};

Shares shares_of(const Flows& flows) {
  Shares shares{.least = 1e300};
  double squares = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    const double rate = flows.rate(i);
    shares.sum += rate;
    squares += rate * rate;
    shares.least = std::min(shares.least, rate);
    shares.most = std::max(shares.most, rate);
  }
  const auto count = static_cast<double>(flows.size());
  if (squares > 0) shares.jain = shares.sum * shares.sum / (count * squares);
  const double mean = std::max(shares.sum / count, 1.0);
  shares.least /= mean;
  shares.most /= mean;
  return shares;
}

// ---- I1, I2, X2, X3: flows without an end, from all hosts of a star to one

Row steady(const Cell& cell, std::string_view algorithm, const FlowsOptions& given,
           const Link& link) {
  FlowsOptions options = given;
  options.seed = cell.seed;
  options.topology = fabric::star(cell.senders + 1, link.cable());
  Flows flows(options);
  add_incast(flows, link, cell.senders, 0, options.seed);
  const int64_t warm_up = cell.senders >= 512 ? 240 : 40;
  flows.run(rounds(link, warm_up));
  const double peak = flows.peak_packets();
  flows.begin_count();
  flows.run(rounds(link, warm_up + 400));
  if (flows.overloaded()) return {cell.scenario, cell.name, algorithm, {}};
  const Shares shares = shares_of(flows);
  return {cell.scenario,
          cell.name,
          algorithm,
          {{"utilisation", shares.sum / link.rate()},
           {"jain", shares.jain},
           {"p50", flows.queue_packets(0.5)},
           {"p99", flows.queue_packets(0.99)},
           {"p999", flows.queue_packets(0.999)},
           {"peak", std::max(peak, flows.peak_packets())},
           {"drops", static_cast<double>(flows.drops())}},
          flows.trace_hash()};
}

Row run_i1(const Cell& cell, std::string_view algorithm) {
  return steady(cell, algorithm, options_for(algorithm, hundred), hundred);
}

Row run_i2(const Cell& cell, std::string_view algorithm) {
  return steady(cell, algorithm, options_for(algorithm, four_hundred), four_hundred);
}

Row run_x2(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.metered = false;
  return steady(cell, algorithm, options, hundred);
}

Row run_x3(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.metered = false;
  options.marking = {.from_bytes = 8 * Flows::mtu};
  return steady(cell, algorithm, options, hundred);
}

// ---- X1: behind a switch with a meter, a slower one without

Row run_x1(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.seed = cell.seed;
  const fabric::ParkingLot lot{.hops = 1,
                               .pairs = cell.senders,
                               .host_cable = {hundred.bytes_per_second, 900ns},
                               .trunk_cable = {hundred.bytes_per_second, 1200ns}};
  options.topology = fabric::parking_lot(lot);
  uint32_t port = 0;
  for (fabric::Cable& cable : options.topology.cables) {
    if (cable.a.node != 1 && cable.b.node != 1) continue;
    cable.bytes_per_second /= 2;
    port = cable.a.node == 1 ? cable.b.port : cable.a.port;
  }
  options.unmetered = 1;
  Flows flows(options);
  flows.observe(1, port);
  for (uint32_t i = 0; i < cell.senders; ++i) {
    flows.add({.from = lot.crossing(0, i),
               .to = 1,
               .bytes_per_second = hundred.rate(),
               .start = start_of(options.seed, i)});
  }
  flows.run(rounds(hundred, 40));
  const double peak = flows.peak_packets();
  flows.begin_count();
  flows.run(rounds(hundred, 440));
  const Shares shares = shares_of(flows);
  return {cell.scenario,
          cell.name,
          algorithm,
          {{"utilisation", shares.sum / (hundred.rate() / 2)},
           {"jain", shares.jain},
           {"p50", flows.queue_packets(0.5)},
           {"p99", flows.queue_packets(0.99)},
           {"peak", std::max(peak, flows.peak_packets())},
           {"drops", static_cast<double>(flows.drops())}},
          flows.trace_hash()};
}

// ---- I3: flows that end

Row run_i3(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.seed = cell.seed;
  options.topology = fabric::star(cell.senders + 1, hundred.cable());
  Flows flows(options);
  add_incast(flows, hundred, cell.senders, cell.bytes, options.seed);
  // All bytes at the line's rate, and the way of the first one.
  const double ideal = static_cast<double>(cell.senders * cell.bytes) / hundred.rate() +
                       seconds(hundred.base_rtt) / 2;
  const Time end = flows.run_to_completion(Time(congestion::duration_of(10 * ideal)));
  Time first = never;
  for (size_t i = 0; i < flows.size(); ++i) first = std::min(first, flows.finished(i));
  const auto since = [](Time time) { return seconds(time - Time(1us)); };
  return {cell.scenario,
          cell.name,
          algorithm,
          {{"last", end == never ? INFINITY : since(end) / ideal},
           {"spread", end == never ? INFINITY : since(end) / since(first)},
           {"peak", flows.peak_packets()},
           {"drops", static_cast<double>(flows.drops())}},
          flows.trace_hash()};
}

// ---- J1: flows join and leave

constexpr int64_t phase_rounds = 100, window_rounds = 5;

// Runs one phase, and returns the round trips after which the flows from `first` to `last` have
// equal shares of a used line in each window; infinity if that is never.
double settling(Flows& flows, uint32_t first, uint32_t last, int64_t phase) {
  double settled = 0;
  std::vector<uint64_t> before(flows.size());
  for (int64_t window = 0; window < phase_rounds; window += window_rounds) {
    for (uint32_t i = 0; i < flows.size(); ++i) before[i] = flows.delivered(i);
    flows.run(rounds(hundred, phase * phase_rounds + window + window_rounds));
    double sum = 0, squares = 0;
    for (uint32_t i = first; i < last; ++i) {
      const auto bytes = static_cast<double>(flows.delivered(i) - before[i]);
      sum += bytes;
      squares += bytes * bytes;
    }
    const double jain = squares == 0 ? 0 : sum * sum / ((last - first) * squares);
    const double used = sum / (hundred.bdp() * window_rounds);
    if (jain < 0.95 || used < 0.85) settled = static_cast<double>(window + window_rounds);
  }
  return settled < static_cast<double>(phase_rounds) ? settled : INFINITY;
}

Row run_j1(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.seed = cell.seed;
  constexpr uint32_t count = 8;
  options.topology = fabric::star(count + 1, hundred.cable());
  Flows flows(options);
  for (uint32_t i = 0; i < count; ++i) {
    flows.add({.from = i + 1,
               .to = 0,
               .bytes_per_second = hundred.rate(),
               .start = rounds(hundred, i * phase_rounds),
               .stop = rounds(hundred, (count + i) * phase_rounds)});
  }
  double join = 0, leave = 0;
  for (uint32_t i = 0; i < count; ++i) join = std::max(join, settling(flows, 0, i + 1, i));
  for (uint32_t i = 0; i + 1 < count; ++i) {
    leave = std::max(leave, settling(flows, i + 1, count, count + i));
  }
  return {cell.scenario,
          cell.name,
          algorithm,
          {{"join", join},
           {"leave", leave},
           {"p99", flows.queue_packets(0.99)},
           {"peak", flows.peak_packets()}},
          flows.trace_hash()};
}

// ---- L1: a flow over three hops, and 1, 2 and 4 flows over one of them

Row run_l1(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.seed = cell.seed;
  const fabric::ParkingLot lot{.hops = 3,
                               .pairs = 4,
                               .host_cable = {hundred.bytes_per_second, 1352ns},
                               .trunk_cable = {hundred.bytes_per_second, 788ns}};
  options.topology = fabric::parking_lot(lot);
  // The cables of the long flow are shorter, so that all round trips take 8 us.
  for (fabric::Cable& cable : options.topology.cables) {
    if (std::min(cable.a.node, cable.b.node) < 2) cable.delay = 400ns;
  }
  Flows flows(options);
  const auto add = [&](uint32_t from, uint32_t to) {
    const auto index = static_cast<uint32_t>(flows.size());
    flows.add({.from = from,
               .to = to,
               .bytes_per_second = hundred.rate(),
               .start = start_of(options.seed, index)});
  };
  add(0, 1);
  for (uint32_t hop = 0; hop < 3; ++hop) {
    for (uint32_t pair = 0; pair < 1u << hop; ++pair) {
      add(lot.crossing(hop, pair), lot.crossing(hop, pair) + 1);
    }
  }
  flows.run(rounds(hundred, 400));
  flows.begin_count();
  flows.run(rounds(hundred, 1200));
  // Max-min: the long flow has a fifth of the last hop, and the others what it leaves.
  constexpr double fair[] = {0.2, 0.8, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2};
  double share[8], off = 0;
  for (size_t i = 0; i < 8; ++i) {
    share[i] = flows.rate(i) / hundred.rate();
    off = std::max(off, std::abs(share[i] / fair[i] - 1));
  }
  return {cell.scenario,
          cell.name,
          algorithm,
          {{"long", share[0]},
           {"one", share[1]},
           {"two", (share[2] + share[3]) / 2},
           {"four", (share[4] + share[5] + share[6] + share[7]) / 4},
           {"off", off}},
          flows.trace_hash()};
}

// ---- M1: flows with round trips of 4, 8 and 32 us

Row run_m1(const Cell& cell, std::string_view algorithm) {
  FlowsOptions options = options_for(algorithm, hundred);
  options.seed = cell.seed;
  constexpr Duration round_trips[] = {4us, 8us, 32us};
  options.topology = fabric::star(7, {hundred.bytes_per_second, 500ns});
  const double sent = 2 * (mtu + Flows::ack_bytes) / hundred.rate();
  for (fabric::Cable& cable : options.topology.cables) {
    const uint32_t host = std::min(cable.a.node, cable.b.node);
    if (host == 0) continue;
    const Duration whole = round_trips[(host - 1) % 3];
    cable.delay = congestion::duration_of((seconds(whole - 1us) - sent) / 2);
  }
  Flows flows(options);
  for (uint32_t i = 0; i < 6; ++i) {
    flows.add({.from = i + 1,
               .to = 0,
               .bytes_per_second = hundred.rate(),
               .start = start_of(options.seed, i),
               .base_rtt = round_trips[i % 3]});
  }
  flows.run(rounds(hundred, 400));
  flows.begin_count();
  flows.run(rounds(hundred, 1200));
  const Shares shares = shares_of(flows);
  return {cell.scenario,
          cell.name,
          algorithm,
          {{"utilisation", shares.sum / hundred.rate()},
           {"jain", shares.jain},
           {"least", shares.least},
           {"most", shares.most},
           {"p99", flows.queue_packets(0.99)}},
          flows.trace_hash()};
}

// ---- anchors

// Two flows share 40 Gb/s evenly, on average over 20 seeds.
Row anchor_of_dcqcn() {
  double first = 0, second = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    FlowsOptions options = options_for("dcqcn", forty);
    options.topology = fabric::star(3, forty.cable());
    options.seed = seed;
    Flows flows(options);
    add_incast(flows, forty, 2, 0, seed);
    flows.run(Time(20ms));
    flows.begin_count();
    flows.run(Time(60ms));
    first += flows.rate(0) * 8e-9 / 20;
    second += flows.rate(1) * 8e-9 / 20;
  }
  const bool reached = std::max(std::abs(first - 20), std::abs(second - 20)) <= 1;
  return {"anchor",
          "two flows at 40 Gb/s, Gb/s of each (20)",
          "dcqcn",
          {{"first", first}, {"second", second}, {"reached", reached}}};
}

// N windows of w packets fill the line for the target delay of w: flow scaling's fixed point.
Row anchor_of_swift() {
  constexpr uint32_t senders = 64;
  FlowsOptions options = options_for("swift", hundred);
  options.topology = fabric::star(senders + 1, hundred.cable());
  Flows flows(options);
  add_incast(flows, hundred, senders, 0, 1);
  flows.run(rounds(hundred, 2000));
  flows.begin_count();
  flows.run(rounds(hundred, 4000));
  double low = 1e-3, high = 1e3;
  const auto delay = [&](double window) { return senders * window * mtu / hundred.bdp(); };
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (delay(middle) < swift_target(middle) ? low : high) = middle;
  }
  double measured = 0;
  for (uint32_t i = 0; i < senders; ++i) measured += flows.round_trip(i) / senders;
  measured /= seconds(hundred.base_rtt);
  const double predicted = delay(low);
  return {"anchor",
          "round trip of 64 flows at the fixed point of flow scaling, in base round trips",
          "swift",
          {{"measured", measured},
           {"predicted", predicted},
           {"reached", std::abs(measured / predicted - 1) <= 0.1}}};
}

// 16 flows start with a BDP each. The line needs 16 round trips to send that; 2 later, the queue is
// below one BDP for good.
Row anchor_of_hpcc() {
  constexpr uint32_t senders = 16;
  FlowsOptions options = options_for("hpcc", many_packets);
  options.topology = fabric::star(senders + 1, many_packets.cable());
  Flows flows(options);
  add_incast(flows, many_packets, senders, 0, 1);
  flows.run(rounds(many_packets, senders + 2));
  flows.begin_count();
  flows.run(rounds(many_packets, 200));
  const double most = flows.peak_packets() * mtu / many_packets.bdp();
  return {
      "anchor",
      "16:1 at 146 packets in a BDP: largest queue in BDP, 2 round trips after the start has left",
      "hpcc",
      {{"most", most}, {"reached", most < 1}}};
}

// Four flows have a quarter each.
Row anchor_of_rcp() {
  constexpr uint32_t senders = 4;
  FlowsOptions options = options_for("rcp", hundred);
  options.topology = fabric::star(senders + 1, hundred.cable());
  Flows flows(options);
  add_incast(flows, hundred, senders, 0, 1);
  flows.run(rounds(hundred, 200));
  flows.begin_count();
  flows.run(rounds(hundred, 1000));
  double off = 0;
  for (uint32_t i = 0; i < senders; ++i) {
    off = std::max(off, std::abs(flows.rate(i) / hundred.rate() * senders - 1));
  }
  return {"anchor",
          "4 flows, largest difference from a quarter of the line each",
          "rcp",
          {{"off", off}, {"reached", off <= 0.05}}};
}

}  // namespace

std::vector<Cell> cells() {
  std::vector<Cell> all;
  const auto add = [&](std::string_view scenario, auto run,
                       std::initializer_list<uint32_t> counts) {
    for (const uint32_t senders : counts) {
      all.push_back({scenario, "N=" + std::to_string(senders), run, senders});
    }
  };
  add("I1", run_i1, {2, 8, 32, 128, 512, 1000});
  add("I2", run_i2, {2, 8, 32, 128, 512, 1000});
  all.push_back({"I3", "16 x 2 MB", run_i3, 16, 2'000'000});
  all.push_back({"I3", "60 x 500 KB", run_i3, 60, 500'000});
  all.push_back({"I3", "127 x 2 MB", run_i3, 127, 2'000'000});
  all.push_back({"I3", "1000 x 100 KB", run_i3, 1000, 100'000});
  all.push_back({"J1", "8 flows", run_j1});
  all.push_back({"L1", "1, 2, 4 flows", run_l1});
  all.push_back({"M1", "4, 8, 32 us", run_m1});
  add("X1", run_x1, {2, 8, 32, 128});
  add("X2", run_x2, {2, 8, 32, 128, 512});
  add("X3", run_x3, {2, 8, 32, 128});
  return all;
}

std::span<const std::string_view> algorithms() { return all_algorithms; }

Row anchor(std::string_view algorithm) {
  if (algorithm == "dcqcn") return anchor_of_dcqcn();
  if (algorithm == "swift") return anchor_of_swift();
  if (algorithm == "hpcc") return anchor_of_hpcc();
  if (algorithm == "rcp") return anchor_of_rcp();
  return {"anchor", "", algorithm, {}};
}

}  // namespace urma::test
