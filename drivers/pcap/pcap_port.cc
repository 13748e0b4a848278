// SPDX-License-Identifier: Apache-2.0
#include "drivers/pcap/pcap_port.h"

#include <algorithm>

#include "base/clock.h"
#include "drivers/frame_pool.h"
#include "drivers/pcap/ip_headers.h"

namespace urma::drivers::pcap {

PcapPort::PcapPort(std::unique_ptr<PacketPort> inner, std::unique_ptr<CaptureFile> file,
                   const CaptureSettings& settings)
    : inner_(std::move(inner)),
      file_(std::move(file)),
      facts_(inner_->facts()),
      ways_(inner_->ways()),
      clock_(inner_->clock()),
      selves_(facts_.paths.empty() ? std::vector{facts_.self} : facts_.paths),
      compact_(facts_.lossless) {
  facts_.mapped = {};
  facts_.description += ", captured in " + settings.path;
  facts_.settings.insert(facts_.settings.end(), settings.options.begin(), settings.options.end());
}

PortCounters PcapPort::counters() const {
  PortCounters counters = inner_->counters();
  counters.uncaptured += file_->missing();
  return counters;
}

void PcapPort::abandon() {
  inner_->abandon();
  file_->abandon();
}

// The calendar time, because the engine's time does not advance while the process is stopped, and
// `end` does not know it. Simulated time begins in 1970.
Duration PcapPort::time() const {
  return clock_ != nullptr ? clock_->now().time_since_epoch() : read_calendar();
}

// `fill` writes the packet to the address that it is given.
template <class Fill>
void PcapPort::note(Direction direction, Duration at, const Place& place, size_t bytes,
                    Fill&& fill) {
  const Endpoint& self = selves_[place.path < selves_.size() ? place.path : 0];
  Endpoint from = direction == Direction::out ? self : place.other;
  Endpoint to = direction == Direction::out ? place.other : self;
  if (compact_) to.port = ctp_port;
  const size_t head = ip_header_bytes(from, to, bytes);
  std::byte* const packet = file_->begin(head + bytes);
  if (packet == nullptr) return;
  fill(packet + head);
  put_ip_headers(packet, from, to, bytes, facts_.carries.ecn ? place.ecn : Ecn::not_ect);
  file_->end(direction, at, head + bytes);
}

// Frames that the inner port takes belong to it, so they are captured before, and those that it did
// not take are removed again.
size_t PcapPort::send(std::span<TxFrame* const> frames, Time now) {
  size_t taken = 0;
  while (taken < frames.size()) {
    const auto burst = frames.subspan(taken, std::min(frames.size() - taken, CaptureFile::at_once));
    std::array<CaptureFile::Mark, CaptureFile::at_once> before;
    const Duration at = time();
    for (size_t i = 0; i < burst.size(); ++i) {
      before[i] = file_->mark();
      note(Direction::out, at, {burst[i]->to, burst[i]->path, burst[i]->ecn}, burst[i]->bytes(),
           [&](std::byte* to) { flatten(*burst[i], to); });
    }
    const size_t count = inner_->send(burst, now);
    if (count < burst.size()) file_->take_back(before[count]);
    file_->tend(now);
    taken += count;
    if (count < burst.size()) break;
  }
  return taken;
}

size_t PcapPort::receive(std::span<RxFrame> frames, Time now) {
  size_t received = 0;
  do {
    const auto room =
        frames.subspan(received, std::min(frames.size() - received, CaptureFile::at_once));
    const size_t count = inner_->receive(room, now);
    const Duration at = count > 0 ? time() : Duration{};
    for (const RxFrame& frame : room.first(count)) {
      note(Direction::in, at, {*frame.from, frame.path, frame.ecn}, frame.bytes,
           [&](std::byte* to) { copy_bytes(to, frame.data, frame.bytes); });
    }
    file_->tend(now);
    received += count;
    if (count < room.size()) break;
  } while (received < frames.size());
  return received;
}

// ---- ways

uint32_t PcapPort::way_to(const Endpoint& endpoint) const {
  const uint32_t way = ways_->way_to(endpoint);
  if (way < ends_.size()) ends_[way] = endpoint;
  return way;
}

std::byte* PcapPort::begin(uint32_t way, uint32_t bytes) {
  std::byte* const packet = ways_->begin(way, bytes);
  begun_ = {packet, bytes, way};
  return packet;
}

void PcapPort::end() {
  const Endpoint nobody;
  note(Direction::out, time(), {begun_.way < ends_.size() ? ends_[begun_.way] : nobody},
       begun_.bytes, [&](std::byte* to) { copy_bytes(to, begun_.packet, begun_.bytes); });
  file_->make_room();
  ways_->end();
}

}  // namespace urma::drivers::pcap
