// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "drivers/udp/batch_io.h"
#include "drivers/udp/control.h"

namespace urma::drivers::udp {

// Passes batches to the kernel by sendmmsg and recvmmsg, or by sendmsg and recvmsg if they have one
// message.
class MmsgIo final : public BatchIo {
 public:
  MmsgIo();

  int send(int socket, std::span<mmsghdr> messages) override;
  Received receive(int socket, Buffers& buffers, std::span<Arrival> out) override;

 private:
  void prepare(unsigned i, std::byte* buffer);
  Arrival arrival(unsigned i, uint32_t buffer);

  // The arguments of one recvmmsg. The kernel changes only lengths; the rest is written once.
  std::array<mmsghdr, most_received> headers_{};
  std::array<iovec, most_received> vectors_{};
  std::array<SocketAddress, most_received> addresses_;
  std::array<Control, most_received> controls_;
  unsigned expected_ = 1;  // how many messages the next call asks for
};

}  // namespace urma::drivers::udp
