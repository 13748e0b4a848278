#include "drivers/paths/paths_port.h"

namespace urma::drivers {
namespace {

constexpr std::string_view fix = ". Fix: paths():udp:10.0.0.1+udp:10.0.1.1";

// Why these cannot be paths of one device; empty if they can.
std::string objection(const PortFacts& facts, PacketPort& port, PacketPort& first) {
  if (facts.lossless) {
    return "it loses nothing, so there is nothing that another path could make good. Fix: open it "
           "as a device of its own";
  }
  if (!facts.paths.empty()) return "it has several paths itself" + std::string(fix);
  if (port.clock() != first.clock()) return "it has another clock than the first one";
  if (!may_reach(facts.self.address, first.facts().self.address)) {
    return "its address is of another kind than the first one's" + std::string(fix);
  }
  return {};
}

Balance read_options(OptionReader& options) {
  std::string balance = "slice";
  options.text("balance", balance, {"what is spread over the paths: slice or packet"});
  if (balance == "packet") return Balance::packet;
  if (balance != "slice") options.refuse("balance", "slice or packet");
  return Balance::slice;
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  OptionReader options(device);
  const Balance balance = read_options(options);
  if (auto done = options.finish(); !done) return done.error();
  const size_t count = device.inner ? 1 + device.others.size() : 0;
  if (count < 2 || count > most_paths) {
    return device_error(device, device.place,
                        "paths wraps 2 to 8 devices, joined by \"+\"" + std::string(fix));
  }
  std::vector<std::unique_ptr<PacketPort>> ports;
  for (size_t i = 0; i < count; ++i) {
    const DeviceString& inner = i == 0 ? *device.inner : device.others[i - 1];
    Result<std::unique_ptr<PacketPort>> port = open_port(inner);
    if (!port) return port.error();
    ports.push_back(std::move(*port));
    const std::string why = objection(ports[i]->facts(), *ports[i], *ports[0]);
    if (!why.empty()) return device_error(device, inner.place, why);
  }
  return std::unique_ptr<PacketPort>(
      std::make_unique<paths::PathsPort>(std::move(ports), balance, options.settings()));
}

constexpr Driver::Pair pairs[] = {{"paths():udp:+udp:", "paths():udp:+udp:+udp:"},
                                  {"paths():sim:conformance-paths+sim:conformance-paths",
                                   "paths():sim:conformance-paths+sim:conformance-paths"}};

constexpr Driver::Form forms[] = {
    {"paths():DEVICE+DEVICE+...", "one device with a path for each of them, 2 to 8",
     "paths():udp:+udp:", [](OptionReader& options) { read_options(options); }, true}};

}  // namespace

extern const Driver paths_driver;
const Driver paths_driver = {"paths", "joins devices: a peer is reached over several paths", pairs,
                             open, forms};

}  // namespace urma::drivers
