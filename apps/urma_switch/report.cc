// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/report.h"

#include <fmt/format.h>

#include <numeric>

namespace urma::apps::switches {
namespace {

using nlohmann::json;

// Returns the bound for 99 % of the packets, or "-" if the switch keeps no histograms.
std::string p99_text(const fabric::QueueHistogram* histogram) {
  return histogram == nullptr ? "-" : std::to_string(fabric::queue_quantile(*histogram, 0.99));
}

json lane_json(const fabric::Switch& fabric, uint32_t port, uint32_t lane) {
  const fabric::LaneCounters& counters = fabric.counters(port, lane);
  json out{{"lane", lane},
           {"packets", counters.packets},
           {"bytes", counters.bytes},
           {"marked", counters.marked},
           {"congested", counters.congested},
           {"queue_bytes", fabric.queue_bytes(port, lane)},
           {"most_queue_bytes", counters.most_queue}};
  if (const fabric::QueueHistogram* histogram = fabric.histogram(port, lane)) {
    out["queue_p50_bytes"] = fabric::queue_quantile(*histogram, 0.5);
    out["queue_p99_bytes"] = fabric::queue_quantile(*histogram, 0.99);
  }
  return out;
}

json drops_json(const fabric::PortCounters& counters) {
  json out = json::object();
  for (size_t i = 1; i < fabric::drop_reasons; ++i) {
    out[std::string(fabric::name_of(static_cast<fabric::Drop>(i)))] = counters.drops[i];
  }
  return out;
}

uint64_t sum_of(const fabric::PortCounters& counters) {
  return std::accumulate(counters.drops.begin(), counters.drops.end(), uint64_t{0});
}

// The device at the other end of a port, if it has one.
std::string device_at(const Forwarder& forwarder, uint32_t port) {
  if (port < forwarder.trunks()) return "";
  const Hosts::Host& host = forwarder.host_at(port);
  return host.cna != 0 ? to_string(host.at.endpoint) : "";
}

// Returns the CNA of a device; for another switch, whether it answers.
std::string name_of(const Forwarder& forwarder, uint32_t port) {
  if (port >= forwarder.trunks()) return std::to_string(forwarder.last_cna(port));
  return forwarder.switches()[port].silent() ? "silent" : "switch";
}

json port_json(const Forwarder& forwarder, uint32_t port) {
  const fabric::Switch& fabric = forwarder.fabric();
  const fabric::PortCounters& counters = fabric.counters(port);
  const std::string device = device_at(forwarder, port);
  const bool trunk = port < forwarder.trunks();
  json lanes = json::array();
  for (uint32_t lane = 0; lane < fabric.settings().lanes; ++lane) {
    lanes.push_back(lane_json(fabric, port, lane));
  }
  return {{"port", port},
          {"cna", forwarder.last_cna(port)},
          {"has_device", !device.empty()},
          {"device", device.empty() ? json(nullptr) : json(device)},
          {"medium", device.empty() && !trunk ? json(nullptr) : json(forwarder.medium_of(port))},
          {"switch", trunk ? json(to_string(forwarder.switches()[port].at)) : json(nullptr)},
          {"silent", trunk ? json(forwarder.switches()[port].silent()) : json(nullptr)},
          {"silences", trunk ? json(forwarder.switches()[port].silences) : json(nullptr)},
          {"bits_per_second", 8 * forwarder.bytes_per_second(port)},
          {"received_packets", counters.received_packets},
          {"received_bytes", counters.received_bytes},
          {"drops", drops_json(counters)},
          {"dropped_bytes", counters.dropped_bytes},
          {"lanes", lanes}};
}

json medium_json(const Medium& medium) {
  const drivers::PortCounters counters = medium.port().counters();
  return {{"address", to_string(medium.port().facts().self)},
          {"description", medium.port().facts().description},
          {"frames_received", counters.frames_received},
          {"frames_sent", counters.frames_sent},
          {"send_failures", counters.send_failures},
          {"unreachable", counters.unreachable},
          {"malformed", counters.malformed}};
}

}  // namespace

json report_json(const Loop& loop, double seconds) {
  const Forwarder& forwarder = loop.forwarder();
  const Forwarder::Counters& counters = forwarder.counters();
  const Hosts::Counters& hosts = forwarder.hosts().counters();
  json ports = json::array();
  for (uint32_t port = 0; port < forwarder.used_ports(); ++port) {
    ports.push_back(port_json(forwarder, port));
  }
  json media = json::array();
  for (const Medium& medium : loop.media()) media.push_back(medium_json(medium));
  return {{"schema", "urma_switch/1"},
          {"address", media[0]["address"]},
          {"media", media},
          {"seconds", seconds},
          {"meter", std::string(forwarder.fabric().settings().meter)},
          {"malformed", counters.malformed},
          {"strangers", counters.strangers},
          {"misdirected", counters.misdirected},
          {"no_memory", counters.no_memory},
          {"latest_us", 1e-3 * static_cast<double>(counters.latest.count())},
          {"devices", forwarder.hosts().devices()},
          {"hosts",
           {{"attached", hosts.attached},
            {"detached", hosts.detached},
            {"aged_out", hosts.aged_out},
            {"challenged", hosts.challenged},
            {"refused_taken", hosts.refused_taken},
            {"refused_elsewhere", hosts.refused_elsewhere},
            {"refused_full", hosts.refused_full}}},
          {"ports", ports}};
}

std::string report_text(const Loop& loop, double seconds) {
  const Forwarder& forwarder = loop.forwarder();
  const fabric::Switch& fabric = forwarder.fabric();
  const Forwarder::Counters& counters = forwarder.counters();
  const Hosts::Counters& hosts = forwarder.hosts().counters();
  std::string out =
      fmt::format("{:>8} {:>22} {:>11} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "CNA", "device",
                  "received", "sent", "marked", "congested", "dropped", "queue p99", "longest");
  for (uint32_t port = 0; port < forwarder.used_ports(); ++port) {
    const bool trunk = port < forwarder.trunks();
    const std::string device =
        trunk ? to_string(forwarder.switches()[port].at) : device_at(forwarder, port);
    const fabric::PortCounters& in = fabric.counters(port);
    for (uint32_t lane = 0; lane < fabric.settings().lanes; ++lane) {
      const fabric::LaneCounters& lane_counters = fabric.counters(port, lane);
      if (lane > 0 && lane_counters.packets == 0) continue;
      out += fmt::format("{:>8} {:>22} {:>11} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
                         name_of(forwarder, port), device.empty() ? "(gone)" : device,
                         lane == 0 ? in.received_packets : 0, lane_counters.packets,
                         lane_counters.marked, lane_counters.congested, lane == 0 ? sum_of(in) : 0,
                         p99_text(fabric.histogram(port, lane)), lane_counters.most_queue);
    }
  }
  return out +
         fmt::format(
             "after {:.1f} s: {} devices (attached {} times, {} aged out, {} refused); not "
             "forwarded: {} "
             "malformed, {} of strangers, {} without memory; packets left at most {} us late\n",
             seconds, forwarder.hosts().devices(), hosts.attached, hosts.aged_out,
             hosts.refused_taken + hosts.refused_full + hosts.refused_elsewhere,
             counters.malformed + counters.misdirected, counters.strangers, counters.no_memory,
             counters.latest / std::chrono::microseconds(1));
}

}  // namespace urma::apps::switches
