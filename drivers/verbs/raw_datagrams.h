// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "base/region.h"
#include "drivers/verbs/adapter.h"
#include "drivers/verbs/datagram_queue.h"
#include "drivers/verbs/raw_port.h"

namespace urma::drivers::verbs {

// Datagrams of which all bytes are data, from and to one other queue pair. A queue pair that fails
// is not repaired: nothing arrives any longer.
class RawDatagrams final : public RawDatagramPort {
 public:
  // Errors: those of urma::open.
  static Result<std::unique_ptr<RawDatagramPort>> open(const Settings& settings);

  std::string address() const override;
  Result<void> connect(std::string_view address) override;
  bool is_up() override { return handle_ != nullptr; }
  size_t frame_bytes() const override { return adapter_.facts().mtu; }
  size_t send(std::span<const std::byte> data, size_t frame_bytes) override;
  size_t receive(std::span<std::byte> out) override;

 private:
  static constexpr uint32_t send_count = 256;
  static constexpr uint32_t receive_count = 512;
  static constexpr size_t burst = 32;

  explicit RawDatagrams(Adapter adapter);
  Result<void> prepare();

  size_t buffer_bytes() const { return grh_bytes + adapter_.facts().mtu; }
  std::byte* send_buffer(uint64_t number) const;
  std::byte* receive_buffer(uint32_t index) const;
  ibv_send_wr work(std::span<const std::byte> data, ibv_sge& place);
  void settle();
  void post(std::span<const uint32_t> indices);

  Adapter adapter_;
  Region memory_;
  Memory registered_;
  std::optional<DatagramQueue> queue_;
  AddressHandle handle_;  // of the other end
  uint32_t other_pair_ = 0;
  uint16_t lid_ = 0;  // of this port, on InfiniBand
  bool failed_ = false;
  uint64_t posted_ = 0;  // datagrams to be sent
  uint64_t settled_ = 0;
};

}  // namespace urma::drivers::verbs
