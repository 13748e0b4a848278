// SPDX-License-Identifier: Apache-2.0
#include "drivers/udp/mmsg_io.h"

#include <algorithm>
#include <cerrno>

namespace urma::drivers::udp {

MmsgIo::MmsgIo() {
  for (unsigned i = 0; i < most_received; ++i) {
    msghdr& header = headers_[i].msg_hdr;
    header.msg_name = &addresses_[i];
    header.msg_iov = &vectors_[i];
    header.msg_iovlen = 1;
    header.msg_control = &controls_[i];
  }
}

int MmsgIo::send(int socket, std::span<mmsghdr> messages) {
  if (messages.size() > 1) {
    return sendmmsg(socket, messages.data(), static_cast<unsigned>(messages.size()), send_flags);
  }
  return sendmsg(socket, &messages[0].msg_hdr, send_flags) < 0 ? -1 : 1;
}

void MmsgIo::prepare(unsigned i, std::byte* buffer) {
  headers_[i].msg_hdr.msg_namelen = sizeof addresses_[i];
  headers_[i].msg_hdr.msg_controllen = sizeof controls_[i];
  vectors_[i] = {buffer, Buffers::data_bytes};
}

BatchIo::Received MmsgIo::receive(int socket, Buffers& buffers, std::span<Arrival> out) {
  const auto room = static_cast<unsigned>(out.size());
  const unsigned wanted = std::min({expected_, buffers.free(), room});
  if (wanted == 0) return {};
  for (unsigned i = 0; i < wanted; ++i) prepare(i, buffers.at(buffers.next(i)));
  int got = 1;
  if (wanted == 1) {
    // This is the usual case while waiting, and recvmsg is cheaper than recvmmsg.
    const ssize_t bytes = recvmsg(socket, &headers_[0].msg_hdr, MSG_DONTWAIT);
    headers_[0].msg_len = static_cast<unsigned>(bytes);
    if (bytes < 0) got = -1;
  } else {
    got = recvmmsg(socket, headers_.data(), wanted, MSG_DONTWAIT, nullptr);
  }
  if (got < 0) {
    expected_ = 1;
    return {.count = 0, .why = errno};
  }
  const auto count = static_cast<unsigned>(got);
  for (unsigned i = 0; i < count; ++i) out[i] = arrival(i, buffers.take());
  // Asking for more messages than there are costs time for headers and for the empty queue.
  if (room > 1) expected_ = count == wanted ? std::min(2 * count, most_received) : count;
  return {.count = count};
}

Arrival MmsgIo::arrival(unsigned i, uint32_t buffer) {
  Arrival arrival{
      .buffer = buffer, .bytes = headers_[i].msg_len, .from = from_sockaddr(addresses_[i].any)};
  read_controls(headers_[i].msg_hdr, arrival);
  return arrival;
}

}  // namespace urma::drivers::udp
