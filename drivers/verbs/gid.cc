// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/gid.h"

#include <algorithm>
#include <string>

#include "base/bits.h"
#include "base/failed.h"

namespace urma::drivers::verbs {
namespace {

constexpr size_t ipv4_at = 20;  // in the Global Routing Header
constexpr size_t ipv4_bytes = grh_bytes - ipv4_at;

bool is_link_local(const Eid& address) {
  return address.bytes[0] == std::byte{0xfe} &&
         (address.bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

// The higher, the better.
int rank(const Gid& gid) {
  if (gid.kind == Gid::Kind::roce1 || gid.address == Eid{}) return 0;
  if (Endpoint{gid.address, 0}.is_ipv4()) return 3;
  return is_link_local(gid.address) ? 1 : 2;
}

std::string list(std::span<const Gid> table) {
  std::string out;
  for (const Gid& gid : table) {
    if (gid.address == Eid{}) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(gid.index) + " (" + to_string(gid.address) +
           ", " + std::string(name(gid.kind)) + ")";
  }
  return out.empty() ? "none" : out;
}

bool sums_to_ones(const std::byte* ipv4_header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < ipv4_bytes; i += 2) sum += load_be<2>(ipv4_header + i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

// Both headers begin with their version. What lies in front of an IPv4 header may look like the
// other one, and then its checksum decides; rxe does not compute that for its own host.
bool is_ipv4(std::span<const std::byte, grh_bytes> header) {
  constexpr std::byte four{0x45};  // and the length, without options
  constexpr unsigned six = 6;
  if (header[ipv4_at] != four) return false;
  return static_cast<unsigned>(header[0]) >> 4 != six || sums_to_ones(&header[ipv4_at]);
}

}  // namespace

std::string_view name(Gid::Kind kind) {
  constexpr std::string_view names[] = {"InfiniBand", "RoCE v1", "RoCE v2"};
  return names[static_cast<size_t>(kind)];
}

Result<Gid> choose_gid(std::span<const Gid> table, const GidWish& wish, std::string_view place) {
  const auto wanted = [&](const Gid& gid) {
    if (wish.index) return gid.index == *wish.index;
    return wish.address == Eid{} || gid.address == wish.address;
  };
  const Gid* best = nullptr;
  for (const Gid& gid : table) {
    if (wanted(gid) && rank(gid) > (best != nullptr ? rank(*best) : 0)) best = &gid;
  }
  if (best != nullptr) return *best;
  if (wish.index || wish.address != Eid{}) {
    return failed(Status::invalid_argument, "verbs: ", place,
                  " has no such GID of InfiniBand or RoCE v2; its GIDs are: ", list(table))
        .fix("gid=auto, or the number or address of one of these");
  }
  return failed(Status::unsupported, "verbs: ", place,
                " has no GID of InfiniBand or RoCE v2; its GIDs are: ", list(table))
      .fix(
          "give its network interface an address and set it up: as root, ip addr add 10.0.0.5/24 "
          "dev eth0; ip link set eth0 up (rdma link shows which interface it is)");
}

Eid sender_of(std::span<const std::byte, grh_bytes> header) {
  constexpr size_t ipv4_source_at = ipv4_at + 12;
  constexpr size_t ipv6_source_at = 8;
  Eid out;
  if (is_ipv4(header)) {
    out = ipv4(0, 0, 0, 0);
    std::copy_n(header.data() + ipv4_source_at, 4, out.bytes.begin() + 12);
  } else {
    std::copy_n(header.data() + ipv6_source_at, 16, out.bytes.begin());
  }
  return out;
}

}  // namespace urma::drivers::verbs
