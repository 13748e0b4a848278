// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "plugins/nccl/abi.h"
#include "urma/core/descriptor.h"

namespace urma::nccl {

// The version of what this plugin says to other processes. All must have the same.
inline constexpr uint16_t protocol_version = 1;

// The address and the token of a listener's Jetty: `listen` writes them into NCCL's buffer, and
// NCCL carries them to the process that connects. The bytes are those of a host with little-endian
// integers. NCCL passes the same buffer to each call of one `connect`.
struct PeerHandle {
  uint32_t magic;
  uint16_t version;
  uint16_t port;
  std::byte address[16];
  std::byte eid[16];
  uint64_t incarnation;
  uint32_t jetty;
  uint32_t token;
  uint64_t checksum;  // of the bytes before it
  // From the first call of `connect` on, the number of the sender that it makes (connecting.h). Not
  // part of what is carried: `listen` writes 0.
  uint64_t sender;
};
static_assert(sizeof(PeerHandle) <= handle_bytes);

// Writes the handle of a Jetty. Of a device with several addresses, it has the first one.
void write_handle(const Descriptor& jetty, void* buffer);
// Returns the descriptor of the Jetty. Errors: invalid_argument (damaged), version_mismatch.
Result<Descriptor> read_handle(const void* buffer);
// These read and change the number of the sender in the handle.
uint64_t sender_of(const void* buffer);
void set_sender(void* buffer, uint64_t sender);

}  // namespace urma::nccl
