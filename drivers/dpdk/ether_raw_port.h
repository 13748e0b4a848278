// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "drivers/dpdk/ether_device.h"
#include "drivers/dpdk/raw_port.h"

namespace urma::drivers::dpdk {

// Frames of an Ethernet type of their own, to all stations, with the number of bytes of their data.
class EtherRawPort final : public RawPort {
 public:
  // `settings` are those of a device; the port is another one beside it.
  static Result<std::unique_ptr<RawPort>> open(const Settings& settings, uint64_t number);
  ~EtherRawPort() override;

  bool is_up() override;
  size_t frame_bytes() const override { return frame_bytes_; }
  size_t send(std::span<const std::byte> data, size_t frame_bytes) override;
  size_t receive(std::span<std::byte> out) override;

 private:
  static constexpr size_t burst = 32;

  EtherRawPort(std::unique_ptr<EtherDevice> device, size_t frame_bytes)
      : device_(std::move(device)), frame_bytes_(frame_bytes) {}
  bool flush();

  std::unique_ptr<EtherDevice> device_;
  const size_t frame_bytes_;
  std::array<rte_mbuf*, burst> packets_{};
  size_t first_ = 0;  // of the packets that the port has not taken yet
  size_t end_ = 0;
};

}  // namespace urma::drivers::dpdk
