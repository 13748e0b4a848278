// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/clocked_port.h"

namespace urma::drivers::sim {
namespace {

// The bytes of the headers before random numbers and addresses, which differ from run to run.
constexpr uint32_t traced_bytes = 9;

}  // namespace

bool ClockedPort::fits(PacketPort& port) {
  return port.bell() != nullptr || (port.clock() == nullptr && port.descriptors().empty());
}

ClockedPort::ClockedPort(std::shared_ptr<Network> network, std::unique_ptr<PacketPort> inner,
                         const SettingList& options)
    : network_(std::move(network)),
      inner_(std::move(inner)),
      facts_(inner_->facts()),
      ways_(inner_->ways()) {
  facts_.description += ", virtual time";
  facts_.scheduling_delay = {};
  facts_.settings.insert(facts_.settings.end(), options.begin(), options.end());
  if (inner_->bell() != nullptr) bell_.emplace(*inner_->bell()).drowse();
  network_->add(*this);
}

ClockedPort::~ClockedPort() { network_->remove(*this); }

size_t ClockedPort::send(std::span<TxFrame* const> frames, Time now) {
  if (dead_) inner_->unlend(frames);
  const size_t taken = dead_ ? frames.size() : inner_->send(frames, now);
  taken_ += taken;
  if (!dead_) ring_after_sending();
  return taken;
}

size_t ClockedPort::receive(std::span<RxFrame> frames, Time now) {
  if (dead_) return 0;
  // As a thread that goes to sleep does: sets the bell first, then looks for the last time.
  if (bell_) bell_->drowse();
  heard_ = rung_ = false;
  size_t count = inner_->receive(frames, now);
  ring_after_sending();
  if (!bell_ && count > 0) {
    rung_ = true;  // there may be more
    count = lose(frames.first(count));
  }
  for (const RxFrame& frame : frames.first(count)) {
    network_->trace_.add(network_->now(), *frame.from, facts_.self, frame.bytes,
                         {frame.data, std::min(frame.bytes, traced_bytes)});
  }
  return count;
}

void ClockedPort::release(std::span<const RxFrame> frames) {
  if (!dead_) inner_->release(frames);
}

void ClockedPort::abandon() {
  if (!dead_) inner_->abandon();
  dead_ = true;
}

bool ClockedPort::was_rung() {
  const bool rung = bell_ ? bell_->rung() : rung_;
  if (dead_ || heard_ || !rung) return false;
  return heard_ = true;
}

// Rings at all polled ports if the inner port is one, and has sent something: perhaps a message of
// its own, or a packet that it had held back.
void ClockedPort::ring_after_sending() {
  if (bell_) return;
  const PortCounters counters = inner_->counters();
  const uint64_t sent = counters.frames_sent + counters.calls_sent;
  if (std::exchange(sent_, sent) != sent) network_->ring_polled_ports();
}

// Loses received frames as the faults of the network demand. Returns how many are left, at the
// front.
size_t ClockedPort::lose(std::span<RxFrame> frames) {
  Faults& faults = network_->faults;
  size_t kept = 0;
  for (const RxFrame& frame : frames) {
    faults.show(*frame.from, {frame.data, frame.bytes});
    const bool lost = faults.is_cut(*frame.from, facts_.self, frame.bytes) ||
                      network_->prng_.chance(faults.impairment.loss);
    if (lost) {
      inner_->release({&frame, 1});
    } else {
      frames[kept++] = frame;
    }
  }
  return kept;
}

}  // namespace urma::drivers::sim
