// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/command_line.h"
#include "apps/urma_switch/loop.h"
#include "congestion/arithmetic.h"
#include "congestion/port_meter.h"

namespace urma::apps::switches {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_switch - forwards packets between devices that attach over UDP, as a UB switch does

  urma_switch                    listens at 127.0.0.1, UDP port 4794, until Ctrl-C
  urma_switch 10.0.0.9           listens there; or ADDRESS:PORT, with IPv6 in brackets
  urma_perf server --device 'link(10.0.0.9):udp:10.0.0.1'    a device attaches to it

  --device DEVICE   listens at a dpdk: port, besides ADDRESS or instead of it        (repeatable)
  --rate RATE       the rate of each port towards its device: 100Mbit, 2.5Gbit    (1Gbit)
  --line CNA=RATE   another rate for the device with this CNA (repeatable)
  --ports N         how many devices can attach                                   (16)
  --trunk ADDRESS=FIRST-LAST  another switch there has these CNAs (repeatable)
  --trunk-rate RATE the rate of each port to another switch                       (--rate)
  --cnas FIRST-LAST the CNAs of the devices of this switch                        (1-16777215)
  --cc NAME         caqm_r, caqm_w or none; devices choose theirs by --cc as well (caqm_r)
  --rtt US          the round trip without queues, with late ends, in us, for --cc  (2000)
  --mark BYTES      mark packets behind more bytes (ECN)  (never; --cc none: a quarter of --queue)
  --queue BYTES     the longest queue of one lane of a port                       (256K)
  --buffer BYTES    the memory of all queues, of which one has at most half      (4M)
  --lanes N         virtual lanes of each port: of a packet's SL; the highest one sends  (1)
  --lease S         forget a device that was silent for so long                   (5)
  --interval S      print a report every S seconds, not only at the end
  --json            print reports as JSON, one in each line
  --version

A device gets a port of its own, and a CNA: the one that it asks for, if no other device has it.
Packets with the source of another device, of devices that are not attached, without a route, or
larger than 9216 bytes are dropped, and counted by reason.

Exit codes
  0 ok, after Ctrl-C as well   1 error   2 usage
)";

constexpr BitRate port_rate{8e3, 1e12};

void read_lines(const std::vector<std::string>& lines, Forwarder::Settings& settings) {
  for (const std::string& line : lines) {
    const size_t equals = std::min(line.find('='), line.size());
    const auto cna = WholeNumber{1, most_cna}.read(std::string_view(line).substr(0, equals));
    const auto rate =
        port_rate.read(std::string_view(line).substr(std::min(equals + 1, line.size())));
    if (!cna || !rate) {
      usage(fmt::format("--line: \"{}\" is invalid. Fix: give CNA=RATE, as 7=100Mbit", line));
    }
    settings.rates[static_cast<uint32_t>(*cna)] = *rate;
  }
}

constexpr const char* usual_address = "127.0.0.1";

// Returns the address of a switch, with its usual port if none is given.
Endpoint switch_at(const std::string& address) {
  const Result<Endpoint> at = parse_switch_endpoint(address);
  if (!at) usage(at.error().message);
  return *at;
}

struct CnaRange {
  uint32_t first = 1;
  uint32_t last = most_cna;
  bool operator==(const CnaRange&) const = default;
  bool overlaps(const CnaRange& other) const { return first <= other.last && other.first <= last; }
};

// FIRST-LAST, or one CNA.
struct Cnas {
  std::optional<CnaRange> read(std::string_view word) const {
    const size_t dash = std::min(word.find('-'), word.size());
    const WholeNumber cna{1, most_cna};
    const auto first = cna.read(word.substr(0, dash));
    const auto last = dash == word.size() ? first : cna.read(word.substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    return CnaRange{static_cast<uint32_t>(*first), static_cast<uint32_t>(*last)};
  }
  std::string valid() const { return "FIRST-LAST from 1 to 16777215, as 100-199"; }
};

// Returns the device string, with the UDP port of switches unless it names one.
std::string with_port(const std::string& text) {
  const drivers::DeviceString parsed = must(drivers::parse_device_string(text), "--device");
  const drivers::DeviceString* device = &parsed;
  while (device->inner) device = device->inner.get();
  if (device->name == "udp") {
    const std::string& address = device->address;
    const Endpoint at = switch_at(address.empty() ? usual_address : address);
    return std::string(text).replace(device->address_offset, address.size(), to_string(at));
  }
  const auto names_port = [](const auto& option) { return option.key == "port"; };
  if (device->name != "dpdk" || std::ranges::any_of(device->options, names_port)) return text;
  return fmt::format("{}{}port={}", text, device->options.empty() ? '?' : '&', link_port);
}

uint16_t trunk_to(const Endpoint& at, std::vector<Endpoint>& trunks) {
  const auto known = std::find(trunks.begin(), trunks.end(), at);
  if (known == trunks.end()) trunks.push_back(at);
  constexpr size_t most_trunks = 64;
  if (trunks.size() > most_trunks) usage("--trunk: more than 64 switches. Fix: name fewer");
  return static_cast<uint16_t>(std::find(trunks.begin(), trunks.end(), at) - trunks.begin());
}

// Two ranges are the same one, or have no CNA in common.
void read_trunks(const std::vector<std::string>& words, const CnaRange& own,
                 Forwarder::Settings& settings) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      usage(
          fmt::format("--trunk: \"{}\" is invalid. Fix: give ADDRESS=FIRST-LAST, as "
                      "10.0.0.8=100-199",
                      word));
    }
    const auto range = Cnas().read(std::string_view(word).substr(equals + 1));
    if (!range) {
      usage(fmt::format("--trunk: \"{}\" has invalid CNAs. Fix: give {}", word, Cnas().valid()));
    }
    const uint16_t trunk = trunk_to(switch_at(word.substr(0, equals)), settings.trunks);
    auto same = settings.routes.begin();
    for (; same != settings.routes.end(); ++same) {
      const CnaRange other{same->first_cna, same->last_cna};
      if (other == *range) break;
      if (other.overlaps(*range)) {
        usage(
            fmt::format("--trunk: \"{}\" shares CNAs with {}-{}. Fix: give two trunks the same "
                        "CNAs, or none in common",
                        word, other.first, other.last));
      }
    }
    if (own.overlaps(*range)) {
      usage(
          fmt::format("--trunk: \"{}\" has CNAs of this switch's own devices, {}-{}. Fix: give "
                      "--cnas without them, as --cnas 1-99",
                      word, own.first, own.last));
    }
    if (same == settings.routes.end()) {
      same = settings.routes.insert(same, {range->first, range->last, {}});
    }
    same->trunks.push_back(trunk);
  }
}

// Refuses trunks to this switch itself, and to addresses that it cannot send to. `own`: where it
// listens with UDP; `alone`: and nowhere else.
void check_trunks(const Forwarder::Settings& settings, const Endpoint& own, bool alone) {
  for (const Endpoint& at : settings.trunks) {
    if (at == own) {
      usage(fmt::format("--trunk: {} is this switch itself. Fix: name the other switch",
                        to_string(at)));
    }
    if (alone && at.is_ipv4() != own.is_ipv4()) {
      usage(fmt::format("--trunk: {} cannot be reached from {}. Fix: use IPv4 for both, or IPv6",
                        to_string(at), to_string(own)));
    }
  }
}

// Refuses queues that no full packet fits into, and rates that port meters cannot express.
void check(const Forwarder::Settings& settings) {
  uint64_t least_rate = std::min(settings.port.bytes_per_second, settings.trunk_rate);
  for (const auto& [cna, rate] : settings.rates) least_rate = std::min(least_rate, rate);
  if (settings.fabric.meter != "none" &&
      static_cast<double>(least_rate) < congestion::code_zero_rate) {
    usage(
        "--rate, --line, --trunk-rate: port meters need 10 Mb/s or more. Fix: give at least "
        "10Mbit, or --cc none");
  }
  const uint64_t queue = settings.port.queue_bytes;
  const uint64_t packet = settings.fabric.packet_bytes;
  if (queue < packet || settings.fabric.buffer_bytes < 2 * packet) {
    usage(
        fmt::format("--queue, --buffer: a packet may be larger, and one queue has at most half of "
                    "--buffer. Fix: give at least {} and {}",
                    packet, 2 * packet));
  }
  if (queue > settings.fabric.buffer_bytes / 2) {
    usage(
        fmt::format("--queue: one queue has at most half of --buffer. Fix: give at most {}, or a "
                    "larger --buffer",
                    settings.fabric.buffer_bytes / 2));
  }
}

// The usual queue is for the usual buffer.
void fit_queue(Forwarder::Settings& settings) {
  settings.port.queue_bytes = std::min(settings.port.queue_bytes, settings.fabric.buffer_bytes / 2);
}

// Devices that read marks need them. The port meters of a C-AQM keep queues short without them.
void choose_meter(const congestion::PortMeterKind& meter, bool marks_given,
                  Forwarder::Settings& settings) {
  settings.fabric.meter = meter.name;
  if (!marks_given && meter.metering == congestion::Metering::none) {
    settings.port.marking.from_bytes = settings.port.queue_bytes / 4;
  }
}

}  // namespace

std::string help() { return std::string(screen); }

Options parse_options(int count, char** arguments) {
  Options options;
  Forwarder::Settings& settings = options.forwarder;
  settings.port = {.bytes_per_second = 125'000'000, .queue_bytes = 256 << 10};
  settings.fabric.buffer_bytes = 4 << 20;
  settings.fabric.histograms = true;
  std::string address = usual_address;
  std::vector<std::string> devices, lines, trunks;
  CnaRange own;
  uint64_t rtt_us = 2000;  // 1 ms that each end over UDP may be late
  uint64_t lease_seconds = 5;
  const congestion::PortMeterKind* meter = congestion::find_port_meter("caqm_r");
  apps::CommandLine line("urma_switch", help);
  line.text("address", address);
  line.texts("--device", devices);
  line.value("--rate", settings.port.bytes_per_second, port_rate);
  line.texts("--line", lines);
  line.texts("--trunk", trunks);
  line.value("--trunk-rate", settings.trunk_rate, port_rate);
  line.value("--cnas", own, Cnas{});
  line.value("--ports", settings.hosts.ports, apps::WholeNumber{1, 1024});
  line.value("--cc", meter, apps::OneOf{congestion::port_meters()});
  line.value("--rtt", rtt_us, apps::WholeNumber{1, 1'000'000});
  line.value("--mark", settings.port.marking.from_bytes, apps::Bytes{1 << 30});
  line.value("--queue", settings.port.queue_bytes, apps::Bytes{1 << 30});
  line.value("--buffer", settings.fabric.buffer_bytes, apps::Bytes{1 << 30});
  line.value("--lanes", settings.fabric.lanes, apps::WholeNumber{1, fabric::most_lanes});
  line.value("--lease", lease_seconds, apps::WholeNumber{1, 60});
  line.value("--interval", options.interval_seconds, apps::Seconds{0.01, 86400});
  line.flag("--json", options.json);
  if (const Asked asked = line.parse(count, arguments); asked != Asked::nothing) {
    options.mode = asked == Asked::help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  options.mode = Options::Mode::run;
  if (devices.empty() || line.given("address")) {
    options.devices.push_back(fmt::format("udp:{}?ecn=yes", to_string(switch_at(address))));
  }
  for (const std::string& device : devices) options.devices.push_back(with_port(device));
  if (options.devices.size() > Loop::most_media) usage("--device: more than 32. Fix: give fewer");
  read_lines(lines, settings);
  read_trunks(trunks, own, settings);
  if (devices.empty() || line.given("address")) {
    check_trunks(settings, switch_at(address), devices.empty());
  }
  settings.hosts.first_cna = own.first;
  settings.hosts.last_cna = own.last;
  if (settings.trunk_rate == 0) settings.trunk_rate = settings.port.bytes_per_second;
  settings.hosts.lease = std::chrono::seconds(lease_seconds);
  if (!line.given("--queue")) fit_queue(settings);
  choose_meter(*meter, line.given("--mark"), settings);
  settings.fabric.share = 1;  // so that the queues of one port leave memory for those of others
  check(settings);
  settings.fabric.base_rtt = std::chrono::microseconds(rtt_us);
  // Each packet has a slot of its own size in memory that is touched only when it is used.
  settings.fabric.packets = static_cast<uint32_t>(
      std::clamp<uint64_t>(settings.fabric.buffer_bytes / 256, 1024, 128 << 10));
  return options;
}

}  // namespace urma::apps::switches
