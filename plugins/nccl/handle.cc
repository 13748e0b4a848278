// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/handle.h"

#include <cstring>

namespace urma::nccl {
namespace {

constexpr uint32_t handle_magic = 0x6c637275;  // "urcl"

uint64_t checksum_of(const PeerHandle& handle) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&handle);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (size_t i = 0; i < offsetof(PeerHandle, checksum); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

}  // namespace

void write_handle(const Descriptor& jetty, void* buffer) {
  PeerHandle handle{};
  handle.magic = handle_magic;
  handle.version = protocol_version;
  handle.port = jetty.at.port;
  std::memcpy(handle.address, jetty.at.address.bytes.data(), sizeof handle.address);
  std::memcpy(handle.eid, jetty.eid.bytes.data(), sizeof handle.eid);
  handle.incarnation = number(jetty.life);
  handle.jetty = number(jetty.jetty->id);
  handle.token = number(jetty.jetty->token);
  handle.checksum = checksum_of(handle);
  std::memset(buffer, 0, handle_bytes);
  std::memcpy(buffer, &handle, sizeof handle);
}

Result<Descriptor> read_handle(const void* buffer) {
  PeerHandle handle;
  std::memcpy(&handle, buffer, sizeof handle);
  if (handle.magic != handle_magic) {
    return Error{Status::invalid_argument,
                 "the peer's handle is not one of this plugin. Fix: set NCCL_NET_PLUGIN=urma and "
                 "NCCL_NET=URMA for all ranks"};
  }
  if (handle.version != protocol_version) {
    return Error{Status::version_mismatch,
                 "the peer's plugin has version " + std::to_string(handle.version) +
                     " of the protocol, and this one has " + std::to_string(protocol_version) +
                     ". Fix: install the same liburma on all hosts"};
  }
  if (handle.checksum != checksum_of(handle)) {
    return Error{Status::invalid_argument,
                 "the peer's handle is damaged. Fix: carry all 128 bytes of it"};
  }
  Descriptor out;
  std::memcpy(out.at.address.bytes.data(), handle.address, sizeof handle.address);
  out.at.port = handle.port;
  std::memcpy(out.eid.bytes.data(), handle.eid, sizeof handle.eid);
  out.life = Incarnation(handle.incarnation);
  out.jetty = Descriptor::Jetty{.id = JettyId(handle.jetty), .token = TokenValue(handle.token)};
  return out;
}

uint64_t sender_of(const void* buffer) {
  PeerHandle handle;
  std::memcpy(&handle, buffer, sizeof handle);
  return handle.sender;
}

void set_sender(void* buffer, uint64_t sender) {
  std::memcpy(static_cast<std::byte*>(buffer) + offsetof(PeerHandle, sender), &sender,
              sizeof sender);
}

}  // namespace urma::nccl
