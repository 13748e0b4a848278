// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "base/socket_address.h"
#include "drivers/port_facts.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace urma::drivers::udp {

// Returns the rate in bytes per second that the text of /sys/class/net/NAME/speed stands for, or 0
// if it is not known: it is a number of Mb/s, or -1.
uint64_t rate_of_speed(std::string_view text);
// Returns the rate in bytes per second of the interface that the kernel describes in `directory`,
// /sys/class/net/NAME; 0 if it is not known. Only a device, a VLAN and a bond of devices state the
// speed that they have: an end of veth says 10 Gb/s, and a tun 10 Mb/s or 10 Gb/s, whatever they
// carry.
uint64_t rate_of_interface(const std::string& directory);

// How batches of messages pass between the port and the kernel.
enum class IoChoice : uint8_t { automatic, mmsg, uring };

// The address and the options of udp:.
struct Settings {
  Eid address;            // if all zero, the first free loopback address
  uint16_t port = 0;      // 0: 4792, or if that is taken any free one
  bool any_port = false;  // use any free port, and leave 4792 to a server at the same address
  uint32_t mtu = 0;       // 0: the largest that the interface carries
  uint64_t rcvbuf = 4 << 20;
  bool gso = true;
  bool gro = true;
  bool ecn = false;  // send and receive the ECN field of packets
  IoChoice io = IoChoice::automatic;
  bool zero_id = false;  // IPv4 packets have the ID 0, which excludes GSO and a connected socket
  Eid eid = {};          // if all zero, the address on port 4792, and a random one elsewhere
  SettingList options = {};  // the options as they were read, for PortFacts::settings

  bool is_ipv4() const { return address == Eid{} || Endpoint{address, 0}.is_ipv4(); }
};

// A UDP socket for UB packets: non-blocking, with DF set, and with an error queue (IP_RECVERR). It
// sets the options of the socket, and binds and connects it; `UdpPort`, which owns it, sends and
// receives. Used by one thread at a time.
class Socket {
 public:
  static Result<Socket> make(const Settings& settings);
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), gso_(other.gso_), gro_(other.gro_) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }
  // Selects whether datagrams of one size are received as one. Has no effect if the settings
  // disable it.
  void coalesce(bool on) const;
  // These return whether the settings and the kernel allow GSO and GRO.
  bool gso() const { return gso_; }
  bool gro() const { return gro_; }
  uint32_t receive_buffer_bytes() const { return buffer_bytes(SO_RCVBUF); }
  uint32_t send_buffer_bytes() const { return buffer_bytes(SO_SNDBUF); }
  // The interface that has this address. If no interface has it, the name is empty, and the MTU
  // 1500.
  struct Interface {
    std::string name;
    uint32_t mtu = 1500;
    uint64_t bytes_per_second = 0;  // 0 if it does not say so, as the loopback interface
  };
  Interface interface_of(const Endpoint& self) const;

  // Binds the socket according to the settings, and returns its address. Errors: address_in_use,
  // permission_denied, no_resources, invalid_argument (not an address of this machine), io_error.
  Result<Endpoint> bind(const Settings& settings);
  // Binds to the address of `other`, without opening it to sockets of other users. Returns false on
  // failure.
  bool share(const Socket& other, const Endpoint& address);
  // Connects the socket to this peer: it sends to this peer, and the kernel delivers datagrams from
  // the peer to it. Returns false on failure.
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
