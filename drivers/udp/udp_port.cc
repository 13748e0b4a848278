#include "drivers/udp/udp_port.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "urma/base/entropy.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif

namespace urma::drivers::udp {
namespace {

// Limits of one segmented send: the kernel's on segments, and UDP's on length.
constexpr unsigned most_segments = 64;
constexpr size_t most_segmented_bytes = 65000;
// What UDP, IP and UB's headers add to a packet's payload, at most.
constexpr uint32_t overhead = 48 + 96;

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t to_sockaddr(const Endpoint& endpoint, SocketAddress& out) {
  out = {};
  if (endpoint.is_ipv4()) {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(endpoint.port);
    std::memcpy(&out.v4.sin_addr, endpoint.address.bytes.data() + 12, 4);
    return sizeof out.v4;
  }
  out.v6.sin6_family = AF_INET6;
  out.v6.sin6_port = htons(endpoint.port);
  std::memcpy(&out.v6.sin6_addr, endpoint.address.bytes.data(), 16);
  return sizeof out.v6;
}

Endpoint from_sockaddr(const SocketAddress& in) {
  Endpoint endpoint;
  if (in.any.sa_family == AF_INET) {
    endpoint.address = ipv4(0, 0, 0, 0);
    std::memcpy(endpoint.address.bytes.data() + 12, &in.v4.sin_addr, 4);
    endpoint.port = ntohs(in.v4.sin_port);
  } else {
    std::memcpy(endpoint.address.bytes.data(), &in.v6.sin6_addr, 16);
    endpoint.port = ntohs(in.v6.sin6_port);
  }
  return endpoint;
}

template <class Value>
bool set_option(int socket, int level, int name, Value value) {
  return setsockopt(socket, level, name, &value, sizeof value) == 0;
}

Error system_error(std::string what, int why) {
  const Status status = why == EADDRINUSE                 ? Status::address_in_use
                        : why == EACCES || why == EPERM   ? Status::permission_denied
                        : why == EMFILE || why == ENOBUFS ? Status::no_resources
                        : why == EADDRNOTAVAIL            ? Status::invalid_argument
                                                          : Status::io_error;
  std::string message = "udp: " + std::move(what) + ": " + std::strerror(why);
  if (why == EADDRNOTAVAIL) {
    return {status, message + ". Fix: use an address of this machine (see: ip addr)"};
  }
  return error(status, std::move(message));
}

// MTU of the interface that has this address; 1500 if there is none.
uint32_t interface_mtu(int socket, const Endpoint& self) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return 1500;
  uint32_t mtu = 1500;
  const bool loopback4 = self.is_ipv4() && self.address.bytes[12] == std::byte{127};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    std::memcpy(&address, one->ifa_addr, family == AF_INET ? sizeof address.v4 : sizeof address.v6);
    // All of 127/8 lives on the loopback interface, which lists only 127.0.0.1.
    const bool ours = from_sockaddr(address).address == self.address ||
                      (loopback4 && (one->ifa_flags & IFF_LOOPBACK) != 0);
    if (!ours) continue;
    ifreq request{};
    std::strncpy(request.ifr_name, one->ifa_name, IFNAMSIZ - 1);
    if (ioctl(socket, SIOCGIFMTU, &request) == 0) mtu = static_cast<uint32_t>(request.ifr_mtu);
    break;
  }
  freeifaddrs(all);
  return mtu;
}

// A random EID in fd00::/8 with Sub-ID 1: for ports that the address alone does not name.
Eid random_eid() {
  SecureEntropy entropy;
  Eid eid;
  for (std::byte& byte : eid.bytes) byte = static_cast<std::byte>(entropy.next32());
  eid.bytes[0] = std::byte{0xfd};
  eid.bytes[13] &= std::byte{0xf0};
  eid.bytes[14] = std::byte{0};
  eid.bytes[15] = std::byte{1};
  return eid;
}

bool bind_to(int socket, const Endpoint& endpoint) {
  SocketAddress address;
  const socklen_t length = to_sockaddr(endpoint, address);
  return bind(socket, &address.any, length) == 0;
}

// Binds as the settings say; says where, and whether off the UB port.
Result<Endpoint> bind_socket(int socket, const Settings& settings) {
  if (settings.address == Eid{}) {
    for (uint8_t n = 1; n < 255; ++n) {
      const Endpoint at{ipv4(127, 0, 0, n), ub_port};
      if (bind_to(socket, at)) return at;
      if (errno != EADDRINUSE) return system_error("binding " + to_string(at), errno);
    }
    return system_error("binding any of 127.0.0.1 to 127.0.0.254, port 4792", EADDRINUSE);
  }
  Endpoint at{settings.address, settings.port != 0 ? settings.port : ub_port};
  if (bind_to(socket, at)) return at;
  if (settings.port != 0 || errno != EADDRINUSE) {
    return system_error("binding " + to_string(at), errno);
  }
  at.port = 0;
  if (!bind_to(socket, at)) return system_error("binding " + to_string(at), errno);
  SocketAddress bound{};
  socklen_t length = sizeof bound;
  getsockname(socket, &bound.any, &length);
  return from_sockaddr(bound);
}

}  // namespace

// What one sendmmsg needs, kept between calls because it is large.
struct UdpPort::Batch {
  std::array<mmsghdr, messages> headers;
  std::array<iovec, iovecs> vectors;
  std::array<SocketAddress, messages> addresses;
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
  };
  std::array<Control, messages> controls;
  std::array<uint32_t, messages> frames;  // in each message
  unsigned count = 0;
  unsigned vectors_used = 0;

  void begin(const Endpoint& to) {
    mmsghdr& header = headers[count];
    header = {};
    header.msg_hdr.msg_namelen = to_sockaddr(to, addresses[count]);
    header.msg_hdr.msg_name = &addresses[count];
    header.msg_hdr.msg_iov = &vectors[vectors_used];
    frames[count] = 0;
  }
  void add(const void* data, size_t bytes) {
    if (bytes == 0) return;
    vectors[vectors_used++] = {const_cast<void*>(data), bytes};
    ++headers[count].msg_hdr.msg_iovlen;
  }
  void segment(size_t bytes) {
    msghdr& header = headers[count].msg_hdr;
    header.msg_control = &controls[count];
    header.msg_controllen = CMSG_SPACE(sizeof(uint16_t));
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const auto size = static_cast<uint16_t>(bytes);
    std::memcpy(CMSG_DATA(control), &size, sizeof size);
  }
};

Result<std::unique_ptr<PacketPort>> UdpPort::open(const Settings& settings) {
  const bool v6 = !(settings.address == Eid{}) && !Endpoint{settings.address, 0}.is_ipv4();
  const int socket =
      ::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return system_error("making a socket", errno);
  std::unique_ptr<UdpPort> port(new UdpPort(socket, settings));

  // ICRC: DF so that IPv4's ID is 0, no automatic flow label; and errors about peers are wanted.
  bool set = true;
  if (v6) {
    set = set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
          set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
          set_option(socket, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0) &&
          set_option(socket, IPPROTO_IPV6, IPV6_RECVERR, 1);
  } else {
    set = set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
          set_option(socket, IPPROTO_IP, IP_RECVERR, 1);
  }
  if (!set) return system_error("setting socket options", errno);
  // Beyond the system's limit with privilege, up to it without.
  const auto wanted = static_cast<int>(settings.rcvbuf);
  if (!set_option(socket, SOL_SOCKET, SO_RCVBUFFORCE, wanted)) {
    set_option(socket, SOL_SOCKET, SO_RCVBUF, wanted);
  }
  if (!set_option(socket, SOL_SOCKET, SO_SNDBUFFORCE, wanted)) {
    set_option(socket, SOL_SOCKET, SO_SNDBUF, wanted);
  }
  port->gso_ = settings.gso && set_option(socket, SOL_UDP, UDP_SEGMENT, 0);
  port->gro_ = settings.gro && set_option(socket, SOL_UDP, UDP_GRO, 1);

  const Result<Endpoint> self = bind_socket(socket, settings);
  if (!self) return self.error();
  port->describe(settings, *self, self->port != ub_port);
  return std::unique_ptr<PacketPort>(std::move(port));
}

UdpPort::UdpPort(int socket, const Settings& settings)
    : socket_{socket},
      gso_(settings.gso),
      gro_(settings.gro),
      batch_(std::make_unique<Batch>()),
      storage_(size_t{buffer_count} * buffer_bytes) {
  for (uint32_t i = buffer_count; i-- > 0;) free_[free_count_++] = i;
}

UdpPort::Socket::~Socket() { close(descriptor); }
UdpPort::~UdpPort() = default;

void UdpPort::describe(const Settings& settings, const Endpoint& self, bool own_port) {
  int rcvbuf = 0;
  socklen_t length = sizeof rcvbuf;
  getsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &length);
  const uint32_t carried = interface_mtu(socket_, self);
  uint32_t mtu = settings.mtu;
  if (mtu == 0) {
    mtu = 8192;
    while (mtu > 1024 && mtu + overhead > carried) mtu /= 2;
  }
  facts_.self = self;
  facts_.eid = own_port ? random_eid() : self.address;
  facts_.mtu = mtu;
  // The kernel counts its own overhead against twice what was asked for.
  facts_.buffer_bytes = static_cast<uint32_t>(rcvbuf) / 2;
  facts_.description = "UDP socket on " + to_string(self) + (own_port ? " (off the UB port)" : "") +
                       ", MTU " + std::to_string(mtu) + (gso_ ? ", GSO" : ", no GSO") +
                       (gro_ ? ", GRO" : ", no GRO") + ", receive buffer " +
                       std::to_string(facts_.buffer_bytes / 1024) + " KiB";
}

// ---- outwards

// Puts frames from the front into the next message: with GSO as many as have one size and one
// destination, the last of which may be shorter. Returns how many; 0: no more iovecs.
size_t UdpPort::group(std::span<TxFrame* const> frames, Batch& batch) const {
  const size_t size = frames[0]->bytes();
  const size_t most = gso_ ? std::min<size_t>(most_segments, most_segmented_bytes / size) : 1;
  batch.begin(frames[0]->to);
  size_t count = 0;
  for (bool shorter = false; count < frames.size() && count < std::max<size_t>(most, 1); ++count) {
    const TxFrame& frame = *frames[count];
    const size_t bytes = frame.bytes();
    if (shorter || bytes > size || !(frame.to == frames[0]->to)) break;
    if (batch.vectors_used + frame.piece_count + 2u > iovecs) break;
    shorter = bytes < size;
    batch.add(frame.head, frame.head_bytes);
    for (unsigned i = 0; i < frame.piece_count; ++i)
      batch.add(frame.pieces[i].data, frame.pieces[i].bytes);
    batch.add(frame.tail.data(), frame.tail_bytes);
  }
  if (count == 0) return 0;
  if (count > 1) batch.segment(size);
  batch.frames[batch.count++] = static_cast<uint32_t>(count);
  return count;
}

// One system call. Returns how many messages it took, or -1. `first`: the batch's first frame.
int UdpPort::transmit(Batch& batch, const TxFrame& first) {
  constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
  // A conversation sends one small datagram at a time: copied into one piece it costs the kernel
  // 0.1 us less than gathered from three.
  constexpr size_t small = 512;
  msghdr& header = batch.headers[0].msg_hdr;
  if (batch.count > 1) return sendmmsg(socket_, batch.headers.data(), batch.count, flags);
  if (batch.frames[0] > 1 || first.bytes() > small) {
    return sendmsg(socket_, &header, flags) < 0 ? -1 : 1;
  }
  std::array<std::byte, small> datagram;
  flatten(first, datagram.data());
  const auto* to = static_cast<const sockaddr*>(header.msg_name);
  return sendto(socket_, datagram.data(), first.bytes(), flags, to, header.msg_namelen) < 0 ? -1
                                                                                            : 1;
}

size_t UdpPort::send(std::span<TxFrame* const> frames, Time) {
  size_t taken = 0;
  while (taken < frames.size()) {
    Batch& batch = *batch_;
    batch.count = batch.vectors_used = 0;
    for (size_t at = taken; at < frames.size() && batch.count < messages;) {
      const size_t grouped = group(frames.subspan(at), batch);
      if (grouped == 0) break;
      at += grouped;
    }
    ++counters_.calls_sent;
    int sent = transmit(batch, *frames[taken]);
    if (sent <= 0) {
      const int why = errno;
      if (why == EAGAIN || why == EWOULDBLOCK) break;
      if (!handle_send_error(why)) continue;
      // This message cannot be sent: as lost as if the network had dropped it.
      counters_.send_failures += batch.frames[0];
      sent = 1;
    }
    uint32_t done = 0;
    for (int i = 0; i < sent; ++i) done += batch.frames[static_cast<size_t>(i)];
    for (uint32_t i = 0; i < done; ++i) pool_.take_back(frames[taken + i]);
    counters_.frames_sent += done;
    taken += done;
  }
  return taken;
}

// False: try again, it was about something else.
bool UdpPort::handle_send_error(int why) {
  switch (why) {
    case EINTR:
      return false;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      // An earlier datagram's fate, told now; told once.
      ++counters_.unreachable;
      drain_errors();
      return why != ECONNREFUSED;
    case EIO:
    case EOPNOTSUPP:
      // No checksum offload on the way: segmentation has to be done by us.
      return !std::exchange(gso_, false);
    default:
      return true;
  }
}

void UdpPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

// ---- inwards

// Reads what the network said about earlier datagrams, so that it does not keep the socket awake.
void UdpPort::drain_errors() {
  for (int i = 0; i < 64; ++i) {
    std::array<std::byte, 256> control;
    std::byte payload[64];
    iovec vector{payload, sizeof payload};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    if (recvmsg(socket_, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    ++counters_.unreachable;
  }
}

size_t UdpPort::receive(std::span<RxFrame> frames, Time) {
  size_t count = split(frames);
  if (count < frames.size()) {
    fetch();
    count += split(frames.subspan(count));
  }
  counters_.frames_received += count;
  return count;
}

// One system call's worth of datagrams.
void UdpPort::fetch() {
  const unsigned wanted = std::min({expected_, free_count_, messages / 4});
  if (wanted == 0) return;
  std::array<mmsghdr, messages / 4> headers;
  std::array<iovec, messages / 4> vectors;
  std::array<SocketAddress, messages / 4> addresses;
  std::array<Batch::Control, messages / 4> controls;
  for (unsigned i = 0; i < wanted; ++i) {
    const uint32_t buffer = free_[free_count_ - 1 - i];
    vectors[i] = {storage_.data() + size_t{buffer} * buffer_bytes, buffer_bytes};
    headers[i] = {};
    headers[i].msg_hdr.msg_name = &addresses[i];
    headers[i].msg_hdr.msg_namelen = sizeof addresses[i];
    headers[i].msg_hdr.msg_iov = &vectors[i];
    headers[i].msg_hdr.msg_iovlen = 1;
    headers[i].msg_hdr.msg_control = &controls[i];
    headers[i].msg_hdr.msg_controllen = sizeof controls[i];
  }
  ++counters_.calls_received;
  int got = 0;
  if (wanted == 1) {
    // The usual case while waiting, and the cheaper call.
    const ssize_t bytes = recvmsg(socket_, &headers[0].msg_hdr, MSG_DONTWAIT);
    headers[0].msg_len = static_cast<unsigned>(bytes);
    got = bytes < 0 ? -1 : 1;
  } else {
    got = recvmmsg(socket_, headers.data(), wanted, MSG_DONTWAIT, nullptr);
  }
  if (got < 0) {
    expected_ = 1;
    if (errno != EAGAIN && errno != EINTR) {
      ++counters_.unreachable;
      drain_errors();
    }
    return;
  }
  for (unsigned i = 0; i < static_cast<unsigned>(got); ++i) {
    const uint32_t buffer = free_[--free_count_];
    Filled& filled = filled_[buffer];
    filled = {.from = from_sockaddr(addresses[i]),
              .bytes = headers[i].msg_len,
              .segment = headers[i].msg_len,
              .next = 0,
              .lent = 1};  // one for being in line
    for (cmsghdr* control = CMSG_FIRSTHDR(&headers[i].msg_hdr); control != nullptr;
         control = CMSG_NXTHDR(&headers[i].msg_hdr, control)) {
      if (control->cmsg_level != SOL_UDP || control->cmsg_type != UDP_GRO) continue;
      int size = 0;
      std::memcpy(&size, CMSG_DATA(control), sizeof size);
      if (size > 0) filled.segment = static_cast<uint32_t>(size);
    }
    line_[(line_first_ + line_count_++) % buffer_count] = buffer;
  }
  // Asking for more than there are costs headers and a look at an empty queue.
  const auto count = static_cast<unsigned>(got);
  expected_ = count == wanted ? std::min(2 * count, messages / 4) : count;
}

size_t UdpPort::split(std::span<RxFrame> frames) {
  size_t count = 0;
  while (count < frames.size() && line_count_ > 0) {
    const uint32_t buffer = line_[line_first_];
    Filled& filled = filled_[buffer];
    if (filled.next < filled.bytes) {
      const uint32_t bytes = std::min(filled.segment, filled.bytes - filled.next);
      frames[count++] = {storage_.data() + size_t{buffer} * buffer_bytes + filled.next, bytes,
                         buffer, &filled.from};
      filled.next += bytes;
      ++filled.lent;
    }
    if (filled.next >= filled.bytes) {
      line_first_ = (line_first_ + 1) % buffer_count;
      --line_count_;
      done_with(buffer);
    }
  }
  return count;
}

void UdpPort::done_with(uint32_t buffer) {
  if (--filled_[buffer].lent == 0) free_[free_count_++] = buffer;
}

void UdpPort::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) done_with(frame.cookie);
}

}  // namespace urma::drivers::udp
