#include "apps/urma_switch/options.h"

#include <fmt/format.h>

#include <charconv>

#include "apps/common/command_line.h"
#include "congestion/port_meter.h"

namespace urma::apps::switches {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_switch - forwards packets between devices that attach over UDP, as a UB switch does

  urma_switch                    listens at 127.0.0.1, UDP port 4794, until Ctrl-C
  urma_switch 10.0.0.9           listens there; or ADDRESS:PORT, with IPv6 in brackets
  urma_perf server --device 'link(10.0.0.9):udp:10.0.0.1'    a device attaches to it

  --rate RATE       the rate of each port towards its device: 100Mbit, 2.5Gbit    (1Gbit)
  --line CNA=RATE   another rate for the device with this CNA (repeatable)
  --ports N         how many devices can attach                                   (16)
  --cc NAME         congestion control: caqm_r, caqm_w or none; devices choose theirs by
                    --cc as well                                                  (caqm_r)
  --rtt US          the round trip without queues, in microseconds, for --cc      (1000)
  --mark BYTES      mark packets behind more bytes than these (ECN)               (never)
  --queue BYTES     the longest queue of one lane of a port                       (256K)
  --buffer BYTES    the memory of all queues together                             (4M)
  --lanes N         virtual lanes of each port; a packet's SL names its lane, and the highest
                    lane that has packets sends                                   (1)
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

// Bits per second, in powers of ten.
struct Rate {
  std::optional<uint64_t> read(std::string_view word) const {
    double number = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string_view unit = word.substr(static_cast<size_t>(end - word.data()));
    const double factor = unit == "Kbit" ? 1e3 : unit == "Mbit" ? 1e6 : unit == "Gbit" ? 1e9 : 0;
    const double bits = number * factor;
    if (failure != std::errc{} || !(bits >= 8e3 && bits <= 1e12)) return std::nullopt;
    return static_cast<uint64_t>(bits / 8);
  }
  std::string valid() const { return "8Kbit to 1000Gbit, as 100Mbit or 2.5Gbit"; }
};

void read_lines(const std::vector<std::string>& lines, Forwarder::Settings& settings) {
  for (const std::string& line : lines) {
    const size_t equals = std::min(line.find('='), line.size());
    const auto cna = WholeNumber{1, most_cna}.read(std::string_view(line).substr(0, equals));
    const auto rate = Rate().read(std::string_view(line).substr(std::min(equals + 1, line.size())));
    if (!cna || !rate) {
      usage(fmt::format("--line: \"{}\" is invalid. Fix: give CNA=RATE, as 7=100Mbit", line));
    }
    settings.rates[static_cast<uint32_t>(*cna)] = *rate;
  }
}

std::string device_at(const std::string& address) {
  const Result<Endpoint> at = parse_endpoint(address);
  if (!at) usage(at.error().message);
  const bool has_port =
      at->is_ipv4() ? address.find(':') != address.npos : address.find("]:") != address.npos;
  const Endpoint full{at->address, has_port ? at->port : link_port};
  return fmt::format("udp:{}?ecn=yes", to_string(full));
}

}  // namespace

std::string help() { return std::string(screen); }

Options parse_options(int count, char** arguments) {
  Options options;
  Forwarder::Settings& settings = options.forwarder;
  settings.port = {.bytes_per_second = 125'000'000, .queue_bytes = 256 << 10};
  settings.fabric.buffer_bytes = 4 << 20;
  settings.fabric.histograms = true;
  std::string address = "127.0.0.1";
  std::vector<std::string> lines;
  uint64_t rtt_us = 1000;
  uint64_t lease_seconds = 5;
  const congestion::PortMeterKind* meter = congestion::find_port_meter("caqm_r");
  apps::CommandLine line("urma_switch");
  line.text("address", address);
  line.value("--rate", settings.port.bytes_per_second, Rate{});
  line.texts("--line", lines);
  line.value("--ports", settings.hosts.ports, apps::WholeNumber{1, 1024});
  line.value("--cc", meter, apps::OneOf{congestion::port_meters()});
  line.value("--rtt", rtt_us, apps::WholeNumber{1, 1'000'000});
  line.value("--mark", settings.port.marking.from_bytes, apps::Bytes{1 << 30});
  line.value("--queue", settings.port.queue_bytes, apps::Bytes{1 << 30});
  line.value("--buffer", settings.fabric.buffer_bytes, apps::Bytes{1 << 30});
  line.value("--lanes", settings.fabric.lanes, apps::WholeNumber{1, fabric::most_lanes});
  line.value("--lease", lease_seconds, apps::WholeNumber{1, 60});
  line.value("--interval", options.interval_seconds, apps::Seconds{0.1, 86400});
  line.flag("--json", options.json);
  if (const Asked asked = line.parse(count, arguments); asked != Asked::nothing) {
    options.mode = asked == Asked::help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  options.mode = Options::Mode::run;
  options.device = device_at(address);
  read_lines(lines, settings);
  settings.hosts.lease = std::chrono::seconds(lease_seconds);
  settings.fabric.meter = meter->name;
  settings.fabric.base_rtt = std::chrono::microseconds(rtt_us);
  // Each packet has a slot of its own size in memory that is touched only when it is used.
  settings.fabric.packets = static_cast<uint32_t>(
      std::clamp<uint64_t>(settings.fabric.buffer_bytes / 256, 1024, 128 << 10));
  return options;
}

}  // namespace urma::apps::switches
