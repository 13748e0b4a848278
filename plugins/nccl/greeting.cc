// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/greeting.h"

#include <cstring>

namespace urma::nccl {
namespace {

constexpr uint32_t greeting_magic = 0x68637275;  // "urch"

bool has_header(const Greeting& greeting, size_t bytes) {
  return bytes == sizeof greeting && greeting.magic == greeting_magic;
}

}  // namespace

Result<Greeting> make_greeting(Greeting::Kind kind, const Jetty* jetty, const Segment* board) {
  Greeting out{};
  out.magic = greeting_magic;
  out.version = protocol_version;
  out.kind = kind;
  if (jetty == nullptr || board == nullptr) return out;
  auto both = parse_descriptor(board->descriptor());
  const auto other = parse_descriptor(jetty->descriptor());
  if (!both || !other) return both ? other.error() : both.error();
  both->jetty = other->jetty;
  const std::string line = to_string(*both);
  if (line.size() >= sizeof out.line) {
    return Error{Status::no_resources,
                 "the device's descriptor is too long for a greeting. Fix: fewer paths or engines "
                 "in URMA_NCCL_DEVICE"};
  }
  std::memcpy(out.line, line.data(), line.size());
  return out;
}

Result<Imported> read_greeting(Device& device, const Greeting& greeting, size_t bytes) {
  if (!has_header(greeting, bytes)) {
    return Error{Status::invalid_argument,
                 "a message of another program arrived. Fix: keep the handles of NCCL secret"};
  }
  if (greeting.version != protocol_version) {
    return Error{Status::version_mismatch,
                 "the peer's plugin speaks version " + std::to_string(greeting.version) +
                     " of the protocol, and this one " + std::to_string(protocol_version) +
                     ". Fix: install the same liburma on all hosts"};
  }
  return device.import(
      std::string_view(greeting.line, strnlen(greeting.line, sizeof greeting.line)));
}

bool is_probe(const Greeting& greeting, size_t bytes) {
  return has_header(greeting, bytes) && greeting.kind == Greeting::Kind::probe;
}

}  // namespace urma::nccl
