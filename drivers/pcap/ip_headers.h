// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/port_facts.h"

namespace urma::drivers::pcap {

// The IP and UDP headers of captured packets, as the library's sockets send them on a network: DF,
// IPv4 ID 0, flow label 0. A packet of more than 64 KiB is a jumbogram.

// Returns the size of the headers of a packet of this size.
size_t ip_header_bytes(const Endpoint& from, const Endpoint& to, size_t packet_bytes);
inline constexpr size_t most_ip_header_bytes = 40 + 8 + 8;

// Writes the headers to `out`, with checksums, in front of the packet at `out +
// ip_header_bytes(...)`.
void put_ip_headers(std::byte* out, const Endpoint& from, const Endpoint& to, size_t packet_bytes,
                    Ecn ecn);

}  // namespace urma::drivers::pcap
