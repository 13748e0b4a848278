// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "drivers/dpdk/headers.h"
#include "drivers/dpdk/settings.h"

namespace urma::drivers::dpdk {

// The properties of one kind of port (a poll mode driver of DPDK) that its dev_info does not state.
struct Pmd {
  std::string_view name;
  // How a port finds its peer again: by itself, after it was stopped and started, or after it was
  // removed and made anew.
  enum class Heals : uint8_t { itself, restart, reopen };
  Heals heals = Heals::itself;
  // Whether frames of any size pass although the port refuses to be configured for them.
  bool any_mtu = false;
  uint32_t most_ip_mtu = 65535;
  // Whether it accepts mac=.
  bool takes_mac = false;
  // Whether its link has the speed that it states. Virtual ports invent one, most of them 10 Gb/s.
  bool real_speed = false;
  // Whether its MAC address differs from those of other such ports, so that an address may be
  // derived from it.
  bool own_mac = true;
  // Whether the interrupt thread of EAL handles its connection, and frees what a thread that stops
  // or closes the port is freeing at the same time.
  bool connects_by_interrupts = false;
  // Whether it can signal that a packet has arrived, and so wake a thread.
  bool interrupts = false;
  // Whether its extended statistics are those of its connection, which another thread frees without
  // a lock when the peer has gone.
  bool counts_connections = false;
  // The argument with which it is made with several pairs of queues, if it needs one.
  std::string_view queues_argument = {};
  // Whether it takes the buffers of a pool for one array. Buffers in the rear of a pool with gaps
  // are then outside of the memory that the kernel knows, and packets in them are lost.
  bool dense = false;
  // Which memory it reads in chains of buffers, and when.
  enum class Reads : uint8_t {
    own_memory,     // only that of DPDK: other memory is sent as garbage, or not reached
    at_once,        // any, with the processor, before `rte_eth_tx_burst` returns
    when_received,  // any, when the other end in this process looks
    by_device,      // what is mapped for the device, until the port frees the buffer
  };
  Reads reads = Reads::own_memory;
};

// Returns the description of the port with this name: net_memif0, 0000:3b:00.0.
const Pmd& pmd_of(const Settings& settings);
// Returns the arguments with which the port is made: those given, and those without which it would
// be slow, or corrupt large packets. Errors: invalid_argument.
Result<std::string> port_arguments(const Settings& settings, const Pmd& pmd, const Mac& mac);
// Returns the bytes that each receive buffer must have room for, however small the frames are.
uint32_t slot_bytes(const Settings& settings, const Pmd& pmd);
// Returns the value of an argument, or an empty text.
std::string_view argument(std::string_view arguments, std::string_view key);
// Returns the path of the socket at which the port will listen, or an empty text.
std::string_view own_socket(const Settings& settings, const Pmd& pmd);
// A killed process leaves the socket of its port, and the next one could not make it. Removes the
// file if it is a socket at which no process listens. Returns false if one does.
bool make_way_for_socket(std::string_view path);
// Returns what to do if a port cannot be made, by what DPDK has printed.
std::string cure_for_port(const Settings& settings, const std::string& log);

}  // namespace urma::drivers::dpdk
