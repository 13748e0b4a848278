// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>

#include "drivers/udp/batch_io.h"

namespace urma::drivers::udp {

// The kernel stores control messages beside the data of a message: the size of its datagrams, and
// their ECN field. This is room for both.
struct alignas(cmsghdr) Control {
  std::array<std::byte, 2 * CMSG_SPACE(sizeof(int))> bytes;
};

// Adds a control message to `header`, whose `msg_control` has room for it.
template <class Value>
void add_control(msghdr& header, int level, int type, Value value) {
  auto* const control = reinterpret_cast<cmsghdr*>(static_cast<std::byte*>(header.msg_control) +
                                                   header.msg_controllen);
  control->cmsg_level = level;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(control), &value, sizeof value);
  header.msg_controllen += CMSG_SPACE(sizeof value);
}

inline void add_ecn(msghdr& header, const Endpoint& to, Ecn ecn) {
  const bool four = to.is_ipv4();
  add_control(header, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TOS : IPV6_TCLASS,
              static_cast<int>(ecn));
}

// Returns the ECN field of the TOS or traffic class in this control message, or nothing if it has
// something else.
inline std::optional<Ecn> ecn_in(cmsghdr& control) {
  const bool four = control.cmsg_level == IPPROTO_IP && control.cmsg_type == IP_TOS;
  const bool six = control.cmsg_level == IPPROTO_IPV6 && control.cmsg_type == IPV6_TCLASS;
  if (!four && !six) return std::nullopt;
  int value = *CMSG_DATA(&control);  // one byte on IPv4
  if (six) std::memcpy(&value, CMSG_DATA(&control), sizeof value);
  return static_cast<Ecn>(value & 3);
}

// Completes an arrival, whose `bytes` are known, from the control messages of its header: GRO
// reports the size of the datagrams that it joined, and joins none with unlike ECN fields.
inline void read_controls(msghdr& header, Arrival& arrival) {
  arrival.segment = arrival.bytes;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(control), sizeof size);
      if (size > 0) arrival.segment = static_cast<uint32_t>(size);
    } else {
      arrival.ecn = ecn_in(*control).value_or(arrival.ecn);
    }
  }
}

}  // namespace urma::drivers::udp
