// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/port.h"

#include "base/failed.h"
#include "congestion/port_meter.h"

namespace urma::drivers::sim {
namespace {

congestion::Metering metering_of(const Switches* switches) {
  if (switches == nullptr) return congestion::Metering::none;
  return congestion::find_port_meter(switches->settings().meter)->metering;
}

// Checks whether the switches of the network, if it has any, forward what the port sends.
Result<void> fit(const Port::Settings& settings, const Switches* switches) {
  if (switches != nullptr && packet_bytes(settings.mtu) > switches->settings().packet_bytes) {
    return failed(Status::invalid_argument, "sim: mtu=", settings.mtu,
                  " is larger than the mtu of the first device of this ",
                  "network, and its switches forward no larger packets")
        .fix("open the first device with mtu=", settings.mtu,
             ", or this one with the mtu of the first");
  }
  if (settings.service_level > 0 &&
      (switches == nullptr || settings.service_level >= switches->settings().lanes)) {
    return failed(Status::invalid_argument,
                  "sim: the switches of this network have no lane for sl=", settings.service_level)
        .fix("give the first device topology= and more lanes=");
  }
  return {};
}

PortFacts facts_of(const Endpoint& self, const Port::Settings& settings, const Switches* switches) {
  PortFacts facts{.self = self,
                  .eid = self.address,
                  .mtu = settings.mtu,
                  .buffer_bytes = settings.buffer_bytes,
                  .reorders = settings.impairment.reorders(),
                  .carries = {.ecn = true,
                              .cci = switches != nullptr,
                              .lbf = switches != nullptr,
                              .vl = switches != nullptr},
                  .metering = metering_of(switches),
                  .line_bytes_per_second = settings.impairment.bits_per_second / 8,
                  .scheduling_delay = settings.scheduling_delay,
                  .description = "simulated network, virtual time",
                  .settings = settings.options};
  const bool drawn = settings.address == Eid{};
  for (const Setting& setting : std::initializer_list<Setting>{
           {"address", to_string(self), drawn ? Origin::drawn : Origin::device_string,
            drawn ? "the next free one of this network" : "",
            "where devices of this process reach this device"},
           {"eid", to_string(self.address), Origin::driver, "the address",
            "the identity of this device"},
           {"mtu", size_text(settings.mtu), Origin::driver, "as sim.mtu says",
            "largest payload of a packet, in bytes"},
           {"receive_buffer", size_text(settings.buffer_bytes), Origin::driver,
            "as sim.buffer says", "the most bytes that wait for this device"}}) {
    facts.settings.push_back(setting);
  }
  return facts;
}

}  // namespace

Port::Port(std::shared_ptr<Network> network, const Settings& settings)
    : network_(std::move(network)),
      settings_(settings),
      impairment_(settings.impairment),
      held_(frame_count, settings.lateness),
      inbox_(16 * 1024) {
  if (network_->switches() == nullptr) return;
  // The cable of the host has these.
  impairment_.bits_per_second = 0;
  impairment_.mark_bytes = 0;
  impairment_.delay = {};
}

Result<std::unique_ptr<PacketPort>> Port::open(const std::shared_ptr<Network>& network,
                                               const Settings& settings) {
  if (settings.switches && !network->use_switches(*settings.switches)) {
    return Error{Status::invalid_argument,
                 "sim: this network has devices and no switch. Fix: give topology=star to the "
                 "first device that is opened"};
  }
  if (auto fits = fit(settings, network->switches()); !fits) return fits.error();
  std::unique_ptr<Port> port(new Port(network, settings));
  Status status = Status::ok;
  const Endpoint self = network->add(*port, settings.address, status);
  if (status == Status::no_resources) {
    return failed(status, "sim: the topology of this network has ", network->switches()->hosts(),
                  " hosts, and had as many addresses")
        .fix(
            "open devices at earlier addresses again, by address=, or give the first device a "
            "larger topology");
  }
  if (status != Status::ok) {
    return failed(status, "sim: another port of this network has the address ", settings.address)
        .fix("give each another address=");
  }
  port->facts_ = facts_of(self, settings, network->switches());
  if (settings.rdma != Rdma::no) {
    port->ends_.emplace(*network, port->open_memory_,
                        RemoteEnds::Settings{.self = self,
                                             .place = port->place_,
                                             .delay = settings.impairment.delay,
                                             .any_memory = settings.rdma == Rdma::any});
  }
  return std::unique_ptr<PacketPort>(std::move(port));
}

Port::~Port() {
  if (network_ && index_ < network_->ports_.size() && network_->ports_[index_] == this) {
    network_->remove(*this);
  }
}

size_t Port::lend(std::span<TxFrame*> frames) { return pool_.lend(frames); }

void Port::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

size_t Port::send(std::span<TxFrame* const> frames, Time) {
  ++counters_.calls_sent;
  size_t taken = 0;
  for (; taken < frames.size() && !held_.full(); ++taken) {
    held_.take(frames[taken], network_->now(), network_->prng_);
  }
  counters_.frames_sent += taken;
  run_device();
  return taken;
}

// Reads and settles the frames that are due. Does not wake the engine, as a device that must be
// polled does not.
void Port::run_device() {
  const Time now = network_->now();
  if (planned_ <= now) planned_ = never;
  while (TxFrame* frame = held_.read(now)) network_->transmit(*this, *frame);
  while (TxFrame* frame = held_.settle(now)) pool_.take_back(frame);
  plan();
}

void Port::plan() {
  const Time next = held_.next();
  if (next >= planned_) return;
  planned_ = next;
  network_->run_port_at(*this, next);
}

size_t Port::receive(std::span<RxFrame> frames, Time) {
  size_t count = 0;
  while (count < frames.size() && inbox_count_ > 0) {
    const uint32_t packet = inbox_[inbox_first_];
    // An empty inbox begins again, so that only as much memory is touched as it needed at a time.
    inbox_first_ = --inbox_count_ == 0 ? 0 : (inbox_first_ + 1) % inbox_.size();
    const auto& header = network_->packets_[packet];
    inbox_bytes_ -= header.bytes;
    frames[count++] = {.data = network_->packets_.bytes_of(packet),
                       .bytes = header.bytes,
                       .cookie = packet,
                       .from = &header.from,
                       .ecn = header.ecn,
                       .cci = header.cci,
                       .switch_queue = header.switch_queue};
  }
  counters_.frames_received += count;
  counters_.calls_received += count > 0;
  return count;
}

void Port::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) network_->packets_.put_back(frame.cookie);
}

}  // namespace urma::drivers::sim
