#pragma once

#include "drivers/driver.h"

namespace urma::drivers::pcap {

// The IP and UDP headers that a packet had, or would have had, on a network: what a capture shows
// it in. As our sockets send them: DF, IPv4's ID 0, flow label 0. More than 64 KiB is a jumbogram.

size_t ip_header_bytes(const Endpoint& from, const Endpoint& to, size_t packet_bytes);
inline constexpr size_t most_ip_header_bytes = 40 + 8 + 8;

// In front of a packet that stands at `out + ip_header_bytes(...)`, checksums included.
void put_ip_headers(std::byte* out, const Endpoint& from, const Endpoint& to, size_t packet_bytes);

}  // namespace urma::drivers::pcap
