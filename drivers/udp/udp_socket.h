#pragma once

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "drivers/driver.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace urma::drivers::udp {

struct Settings {
  Eid address;            // all zero: the first free loopback address
  uint16_t port = 0;      // 0: 4792, or if that is taken any free one
  bool any_port = false;  // any free one: 4792 is left to a server at the same address
  uint32_t mtu = 0;       // 0: what the interface carries
  uint64_t rcvbuf = 4 << 20;
  bool gso = true;
  bool gro = true;
  bool zero_id = false;      // each IPv4 packet has the ID 0: neither GSO nor a connected socket
  SettingList options = {};  // as they were read, for whoever asks

  bool is_ipv4() const { return address == Eid{} || Endpoint{address, 0}.is_ipv4(); }
};

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};
// Returns the length of what it wrote.
socklen_t to_sockaddr(const Endpoint& endpoint, SocketAddress& out);
Endpoint from_sockaddr(const SocketAddress& in);

// A UDP socket that carries UB: nothing blocks, DF is set, errors about peers are told.
class Socket {
 public:
  static Result<Socket> make(const Settings& settings);
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), gso_(other.gso_), gro_(other.gro_) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }
  // Whether datagrams of one size are received as one, if the settings wish it at all.
  void coalesce(bool on) const;
  // What the kernel can do of what the settings wish.
  bool gso() const { return gso_; }
  bool gro() const { return gro_; }
  uint32_t receive_buffer_bytes() const { return buffer_bytes(SO_RCVBUF); }
  uint32_t send_buffer_bytes() const { return buffer_bytes(SO_SNDBUF); }
  // The interface that has this address. None: an MTU of 1500, and no name.
  struct Interface {
    std::string name;
    uint32_t mtu = 1500;
  };
  Interface interface_of(const Endpoint& self) const;

  // Binds as the settings say; says where.
  Result<Endpoint> bind(const Settings& settings);
  // Binds to an address that `other` is bound to, which stays closed to all other users.
  bool share(const Socket& other, const Endpoint& address);
  // From now on it sends to this peer, and the kernel prefers it for what comes from there.
  bool connect(const Endpoint& peer);

 private:
  Socket(int descriptor, const Settings& settings);
  uint32_t buffer_bytes(int which) const;
  bool bind_to(const Endpoint& endpoint);
  template <class Value>
  bool set_option(int level, int name, Value value) const {
    return setsockopt(descriptor_, level, name, &value, sizeof value) == 0;
  }

  int descriptor_;
  bool gso_ = false;
  bool gro_ = false;
};

}  // namespace urma::drivers::udp
