// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/ether_raw_port.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "base/clock.h"
#include "drivers/dpdk/eal.h"
#include "drivers/dpdk/eal_thread.h"

namespace urma::drivers::dpdk {
namespace {

constexpr uint16_t type_of_experiments = 0x88b5;  // IEEE 802: for local experiments
constexpr size_t raw_header_bytes = ethernet_bytes + 2;
constexpr size_t least_frame_bytes = 60;
constexpr size_t line_bytes = 64;

// Returns the argument by which a port and its peer find each other, or an empty text.
std::string_view meeting_argument(const Pmd& pmd) {
  if (pmd.name == "net_memif") return "socket";
  if (pmd.name == "net_vhost") return "iface";
  if (pmd.name == "net_virtio_user") return "path";
  return pmd.name == "net_ring" ? "pair" : "";
}

// Both ends derive the same from theirs.
Result<Settings> beside(Settings settings, uint64_t number) {
  const std::string_view key = meeting_argument(pmd_of(settings));
  const std::string_view value = argument(settings.arguments, key);
  if (key.empty() || value.empty()) {
    return Error{Status::unsupported,
                 "dpdk: " + settings.port +
                     ": no other port for raw frames can be made beside this one. Fix: net_memif "
                     "with socket=, or net_vhost with net_virtio_user"};
  }
  const auto end = static_cast<size_t>(value.data() + value.size() - settings.arguments.data());
  settings.arguments.insert(end, "." + std::to_string(number));
  settings.port += "_" + std::to_string(number);
  settings.queues = 1;
  return settings;
}

void write_header(std::byte* frame, size_t bytes) {
  std::memset(frame, 0xff, 6);  // to all stations
  std::memset(frame + 6, 2, 6);
  store_be<2>(frame + 12, type_of_experiments);
  store_be<2>(frame + ethernet_bytes, bytes);
}

// Returns the data of a frame, or nothing if it is not one of these.
std::span<const std::byte> data_of(const rte_mbuf& packet) {
  const auto* const frame = rte_pktmbuf_mtod(&packet, const std::byte*);
  if (packet.data_len < raw_header_bytes) return {};
  if (load_be<2>(frame + 12) != type_of_experiments) return {};
  const size_t bytes = load_be<2>(frame + ethernet_bytes);
  if (bytes > packet.data_len - raw_header_bytes) return {};
  return {frame + raw_header_bytes, bytes};
}

}  // namespace

Result<std::unique_ptr<RawPort>> EtherRawPort::open(const Settings& settings, uint64_t number) {
  const Result<const Eal*> eal = Eal::start(settings.eal);
  if (!eal) return eal.error();
  const Result<Settings> own = beside(settings, number);
  if (!own) return own.error();
  Result<std::unique_ptr<EtherDevice>> device = EtherDevice::open(*own);
  if (!device) return device.error();
  const size_t frame_bytes = (settings.ip_mtu - 2) / line_bytes * line_bytes;
  return std::unique_ptr<RawPort>(new EtherRawPort(std::move(*device), frame_bytes));
}

EtherRawPort::~EtherRawPort() {
  rte_pktmbuf_free_bulk(packets_.data() + first_, static_cast<unsigned>(end_ - first_));
}

bool EtherRawPort::is_up() {
  device_->tend(read_clock());
  return device_->link_is_up();
}

// Returns whether the port has taken all packets.
bool EtherRawPort::flush() {
  if (first_ == end_) return true;
  first_ += device_->send(0, std::span(packets_).subspan(first_, end_ - first_), read_clock());
  return first_ == end_;
}

size_t EtherRawPort::send(std::span<const std::byte> data, size_t frame_bytes) {
  register_thread();
  if (!flush()) return 0;
  first_ = end_ = 0;
  size_t taken = 0;
  while (taken < data.size() && end_ < packets_.size()) {
    rte_mbuf* const packet = rte_pktmbuf_alloc(device_->send_pool());
    if (packet == nullptr) break;  // the port has all of them
    const auto one = data.subspan(taken, std::min(frame_bytes, data.size() - taken));
    auto* const frame = rte_pktmbuf_mtod(packet, std::byte*);
    write_header(frame, one.size());
    std::memcpy(frame + raw_header_bytes, one.data(), one.size());
    packet->data_len =
        static_cast<uint16_t>(std::max(least_frame_bytes, raw_header_bytes + one.size()));
    packet->pkt_len = packet->data_len;
    packets_[end_++] = packet;
    taken += one.size();
  }
  flush();
  return taken;
}

size_t EtherRawPort::receive(std::span<std::byte> out) {
  register_thread();
  flush();
  std::array<rte_mbuf*, burst> arrived;
  const size_t count = device_->receive(arrived);
  size_t got = 0;
  for (const rte_mbuf* packet : std::span(arrived).first(count)) {
    const auto data = data_of(*packet);
    if (data.size() > out.size() - got) continue;
    std::memcpy(out.data() + got, data.data(), data.size());
    got += data.size();
  }
  rte_pktmbuf_free_bulk(arrived.data(), static_cast<unsigned>(count));
  return got;
}

}  // namespace urma::drivers::dpdk
