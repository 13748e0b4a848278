#include "drivers/sim/clocked_port.h"

namespace urma::drivers::sim {
namespace {

// The bytes of the headers before random numbers and addresses, which differ from run to run.
constexpr uint32_t traced_bytes = 9;

}  // namespace

ClockedPort::ClockedPort(std::shared_ptr<Network> network, std::unique_ptr<PacketPort> inner,
                         const SettingList& options)
    : network_(std::move(network)),
      inner_(std::move(inner)),
      facts_(inner_->facts()),
      ways_(inner_->ways()),
      bell_(*inner_->bell()) {
  facts_.description += ", virtual time";
  facts_.scheduling_delay = {};
  facts_.settings.insert(facts_.settings.end(), options.begin(), options.end());
  bell_.drowse();
  network_->add(*this);
}

ClockedPort::~ClockedPort() { network_->remove(*this); }

size_t ClockedPort::send(std::span<TxFrame* const> frames, Time now) {
  if (dead_) inner_->unlend(frames);
  const size_t taken = dead_ ? frames.size() : inner_->send(frames, now);
  taken_ += taken;
  return taken;
}

size_t ClockedPort::receive(std::span<RxFrame> frames, Time now) {
  if (dead_) return 0;
  // As a thread that goes to sleep does: sets the bell first, then looks for the last time.
  bell_.drowse();
  heard_ = false;
  const size_t count = inner_->receive(frames, now);
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
  if (dead_ || heard_ || !bell_.rung()) return false;
  return heard_ = true;
}

}  // namespace urma::drivers::sim
