// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/raw_udp.h"

#include <fmt/format.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "apps/common/failure.h"
#include "apps/urma_perf/case.h"
#include "apps/urma_perf/machine.h"
#include "base/crc32.h"
#include "base/socket_address.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace urma::apps::perf {
namespace {

constexpr size_t most_bytes_at_once = 65000;
constexpr size_t largest_in_train = 8192;
constexpr size_t headers_bytes = 48;     // IPv6 and UDP
constexpr size_t receive_bytes = 65536;  // the longest train of datagrams
constexpr unsigned most_datagrams = 64;
// An empty poll takes 0.3 us, so the clock need not be read each time.
constexpr unsigned looks_per_clock = 16;
constexpr int64_t lost_after = 20 * millisecond;

Failure system_failure(std::string_view doing) {
  return {Exit::error,
          fmt::format(
              "--limit: {} failed: {}. Fix: leave --limit out, or let this process use UDP sockets",
              doing, std::strerror(errno))};
}

void set_buffer(int socket, int forced, int polite) {
  constexpr int bytes = 4 << 20;
  if (setsockopt(socket, SOL_SOCKET, forced, &bytes, sizeof bytes) == 0) return;
  setsockopt(socket, SOL_SOCKET, polite, &bytes, sizeof bytes);
}

// The datagrams of one size that one call sends, in the form that the kernel needs.
struct Burst {
  std::array<iovec, most_datagrams> vectors;
  std::array<mmsghdr, most_datagrams> headers;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(uint16_t))> control;

  int send_each(int socket, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      headers[i] = {};
      headers[i].msg_hdr.msg_iov = &vectors[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
    return sendmmsg(socket, headers.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  ssize_t send_train(int socket, unsigned count, size_t datagram_bytes) {
    msghdr header{};
    header.msg_iov = vectors.data();
    header.msg_iovlen = count;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* segment = CMSG_FIRSTHDR(&header);
    segment->cmsg_level = SOL_UDP;
    segment->cmsg_type = UDP_SEGMENT;
    segment->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const auto size = static_cast<uint16_t>(datagram_bytes);
    std::memcpy(CMSG_DATA(segment), &size, sizeof size);
    return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
};

// Sends a whole message.
void send_message(const RawSocket& to, std::span<const std::byte> message) {
  const int socket = to.descriptor();
  if (message.size() <= most_bytes_at_once) {
    ::send(socket, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  const size_t datagram = to.datagram_bytes();
  const size_t train_bytes =
      std::min<size_t>(most_bytes_at_once / datagram, most_datagrams) * datagram;
  Burst burst;
  for (size_t at = 0; at < message.size(); at += train_bytes) {
    const auto train = message.subspan(at, std::min(train_bytes, message.size() - at));
    burst.vectors[0] = {const_cast<std::byte*>(train.data()), train.size()};
    burst.send_train(socket, 1, std::min(datagram, train.size()));
  }
}

// Sleeps until a datagram is there, at most until this time.
void sleep_for_datagram(int socket, int64_t until) {
  pollfd readable{socket, POLLIN, 0};
  const int64_t left = std::max<int64_t>(until - now(), 0);
  const timespec limit{.tv_sec = left / second, .tv_nsec = left % second};
  ppoll(&readable, 1, &limit, nullptr);
}

// Receives the next part of a message of which `got` bytes have been received. Returns its size, or
// 0 if nothing has arrived.
size_t receive_part(int socket, std::span<std::byte> message, size_t got) {
  const ssize_t more = recv(socket, message.data() + got, message.size() - got, MSG_DONTWAIT);
  return more > 0 ? static_cast<size_t>(more) : 0;
}

}  // namespace

RawPlan raw_plan(uint64_t message_bytes, const RawSocket& socket, bool summed) {
  if (message_bytes < least_train_bytes)
    return {.datagram_bytes = message_bytes, .datagrams = most_datagrams};
  const size_t datagram = std::min<size_t>(message_bytes, socket.datagram_bytes());
  const auto datagrams = static_cast<unsigned>(most_bytes_at_once / datagram);
  return {.datagram_bytes = datagram,
          .datagrams = std::min(datagrams, most_datagrams),
          .train = true,
          .summed = summed};
}

void RawSum::add(std::span<const std::byte> bytes, size_t datagram_bytes) {
  for (size_t at = 0; at < bytes.size(); at += datagram_bytes) {
    const auto datagram = bytes.subspan(at, std::min(datagram_bytes, bytes.size() - at));
    value_ ^= crc32_finish(crc32_update(crc32_start, datagram.data(), datagram.size()));
  }
}

// ---- the socket

RawSocket::RawSocket(const Eid& address) {
  SocketAddress self;
  const socklen_t length = to_sockaddr({address, 0}, self);
  descriptor_ = socket(self.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) throw system_failure("making a socket");
  set_buffer(descriptor_, SO_RCVBUFFORCE, SO_RCVBUF);
  set_buffer(descriptor_, SO_SNDBUFFORCE, SO_SNDBUF);
  if (bind(descriptor_, &self.any, length) != 0) throw system_failure("binding a socket");
}

RawSocket::~RawSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void RawSocket::connect(const Endpoint& to) {
  SocketAddress other;
  const socklen_t length = to_sockaddr(to, other);
  if (::connect(descriptor_, &other.any, length) != 0) throw system_failure("connecting a socket");
  int mtu = 0;
  socklen_t mtu_length = sizeof mtu;
  const bool v4 = to.is_ipv4();
  const bool known = getsockopt(descriptor_, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU,
                                &mtu, &mtu_length) == 0;
  const size_t carried = known && mtu > 1280 ? static_cast<size_t>(mtu) : 1280;
  datagram_bytes_ = std::min(largest_in_train, (carried - headers_bytes) / 8 * 8);
}

void RawSocket::coalesce() {
  constexpr int on = 1;
  setsockopt(descriptor_, SOL_UDP, UDP_GRO, &on, sizeof on);
}

uint16_t RawSocket::port() const {
  SocketAddress self{};
  socklen_t length = sizeof self;
  getsockname(descriptor_, &self.any, &length);
  return ntohs(self.any.sa_family == AF_INET ? self.v4.sin_port : self.v6.sin6_port);
}

// ---- ping-pong

void RawPing::run(int64_t until, Histogram& round_trips) {
  const int socket = socket_.descriptor();
  for (int64_t begin = now(); begin < until;) {
    begin = rest(rest_, begin);
    // A late answer to a message that counted as lost would be taken for the answer to this one.
    while (rest_ > 0 && receive_part(socket, in_, 0) > 0) {
    }
    send_message(socket_, out_);
    size_t got = 0;
    for (unsigned looks = 1; got < in_.size(); ++looks) {
      if (rest_ > 0) sleep_for_datagram(socket, begin + lost_after);
      got += receive_part(socket, in_, got);
      if (looks % looks_per_clock != 0 || got == in_.size()) continue;
      spin();
      if (now() - begin < lost_after) continue;
      // A part of a message was lost. Both sides drop the rest of theirs; the other side does so
      // after a pause.
      while (receive_part(socket, in_, 0) > 0) {
      }
      return;
    }
    if (read_) read_words(in_);
    const int64_t end = now();
    round_trips.record(
        static_cast<uint64_t>(std::max<int64_t>(end - begin - rest_ - clock_cost(), 0)));
    begin = end;
  }
}

void RawPong::run(int64_t until) {
  const int socket = socket_.descriptor();
  bool heard = false;
  for (unsigned looks = 1;; ++looks) {
    if (rest_ > 0) sleep_for_datagram(socket, until);
    const size_t more = receive_part(socket, in_, got_);
    heard = heard || more > 0;
    got_ += more;
    if (got_ == in_.size()) {
      got_ = 0;
      if (read_) read_words(in_);
      hold(rest_);
      send_message(socket_, out_);
    }
    if (looks % looks_per_clock != 0 && rest_ == 0) continue;
    spin();
    const int64_t time = now();
    if (heard) heard_ = time;
    heard = false;
    // The rest of this message is lost: its sender waits longer than this before it sends again.
    if (time - heard_ > lost_after / 4) got_ = 0;
    if (time >= until) return;
  }
}

// ---- bursts

RawSender::RawSender(RawSocket& socket, const RawPlan& plan, std::span<const std::byte> source)
    : socket_(socket), plan_(plan), source_(source) {}

std::span<const std::byte> RawSender::next() {
  if (at_ + plan_.datagram_bytes > source_.size()) at_ = 0;
  const auto datagram = source_.subspan(at_, plan_.datagram_bytes);
  at_ += plan_.datagram_bytes;
  return datagram;
}

void RawSender::run(int64_t until) {
  Burst burst;
  do {
    for (unsigned i = 0; i < plan_.datagrams; ++i) {
      const auto datagram = next();
      burst.vectors[i] = {const_cast<std::byte*>(datagram.data()), datagram.size()};
      // Before it is sent, because the ICRC is at the end of a packet.
      if (plan_.summed) sum_.add(datagram, plan_.datagram_bytes);
    }
    if (plan_.train) {
      burst.send_train(socket_.descriptor(), plan_.datagrams, plan_.datagram_bytes);
    } else {
      burst.send_each(socket_.descriptor(), plan_.datagrams);
    }
    spin();
  } while (now() < until);
}

RawReceiver::RawReceiver(RawSocket& socket, const RawPlan& plan, std::span<std::byte> landing,
                         bool read)
    : socket_(socket), plan_(plan), landing_(landing), read_(read) {}

void RawReceiver::run(int64_t until) {
  for (unsigned looks = 1;; ++looks) {
    const size_t bytes = plan_.train ? receive_train() : receive_burst();
    if (bytes == 0) {
      spin();
      if (looks % looks_per_clock == 0 && now() >= until) return;
      continue;
    }
    tally.add(bytes, now());
    if (tally.last >= until) return;
  }
}

size_t RawReceiver::receive_train() {
  if (at_ + receive_bytes > landing_.size()) at_ = 0;
  const auto place = landing_.subspan(at_, std::min(receive_bytes, landing_.size()));
  const size_t got = receive_part(socket_.descriptor(), place, 0);
  if (plan_.summed) sum_.add(place.first(got), plan_.datagram_bytes);
  if (read_) read_words(place.first(got));
  at_ += got;
  return got;
}

size_t RawReceiver::receive_burst() {
  Burst burst;
  const size_t stride = plan_.datagram_bytes;
  if (at_ + stride * plan_.datagrams > landing_.size()) at_ = 0;
  for (unsigned i = 0; i < plan_.datagrams; ++i) {
    burst.vectors[i] = {landing_.data() + at_ + i * stride, stride};
    burst.headers[i] = {};
    burst.headers[i].msg_hdr.msg_iov = &burst.vectors[i];
    burst.headers[i].msg_hdr.msg_iovlen = 1;
  }
  const int got =
      recvmmsg(socket_.descriptor(), burst.headers.data(), plan_.datagrams, MSG_DONTWAIT, nullptr);
  if (got <= 0) return 0;
  const size_t bytes = static_cast<size_t>(got) * stride;
  if (read_) read_words(landing_.subspan(at_, bytes));
  at_ += bytes;
  return bytes;
}

}  // namespace urma::apps::perf
