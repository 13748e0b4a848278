// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "urma/core/endpoint.h"

// RDMA adapters that exist in this process only, with one network between them. A program that
// contains them defines the functions of libibverbs and librdmacm (soft_verbs.cc, soft_manager.cc),
// so the driver's shared object, as it is built for users, runs on them. They are as strict as
// hardware, and fail on demand. `Soft` and `soft` stand for these imitations. Every function may be
// called by any thread.
namespace urma::test::soft {

enum class Link : uint8_t { infiniband, roce, iwarp };

struct AdapterFacts {
  std::string name = "soft0";
  Link link = Link::roce;
  std::vector<Eid> addresses;  // its GIDs; on RoCE each of them twice, in versions 1 and 2
  uint32_t mtu = 4096;         // the most bytes of a datagram: 1024, 2048 or 4096
  int most_pieces = 8;
  uint32_t most_inline = 256;
  size_t most_locked = SIZE_MAX;  // bytes that a process may register
  int opens = 0;                  // an errno with which opening it fails
};

// Adds an adapter. One of the same name and all its objects must be gone.
void plug_in(const AdapterFacts& facts);
// Removes all adapters, and forgets every disturbance. No object of them may be left.
void clear();

// The adapter is removed while it is in use: its objects stay, and do nothing any more.
void remove(const std::string& name);

// How a queue pair fails: as on hardware, which ends all works of it with an error and reports an
// event; or as rxe does, which says nothing until works are posted.
enum class Failure : uint8_t { reported, silent };
// All queue pairs of this adapter fail. Returns how many there are.
size_t fail_queue_pairs(const std::string& name, Failure how);
// All reliable-connected (RC) queue pairs of this adapter fail. Returns how many there are.
size_t fail_reliable_pairs(const std::string& name, Failure how);

// The next queue pairs that the driver starts fail while it does, this many of them.
void fail_starts(size_t times);

// The next datagrams are lost, each with this probability. Works of RC pairs are not: adapters
// retransmit them.
void lose(double share);
// Works are sent late, as by a slow adapter, which reads their memory then: one of them each time
// that the driver has asked this often for completions. 0: at once.
void send_late(size_t polls);
// While this is on, adapters keep the RDMA writes and reads that are posted to RC pairs, and access
// no memory for them. They do so when it is off again, unless the pair has been reset or destroyed.
// A pair that fails flushes its works all the same.
void hold_remote_accesses(bool hold);
// The communication manager gets no answers.
void mute_manager(bool muted);

// A datagram that the adapter has never sent, to the queue pair with this number.
struct Forged {
  Eid from{};
  uint32_t from_pair = 0;
  uint32_t to_pair = 0;
  std::span<const std::byte> bytes;  // behind the Global Routing Header
  bool routed = true;                // whether it has that header
};
// Returns whether a receive buffer took it.
bool deliver(const Forged& datagram);
// Returns the numbers of all UD queue pairs that can receive.
std::vector<uint32_t> receiving_pairs();
// Returns the numbers of all RC queue pairs that can send.
std::vector<uint32_t> reliable_pairs();

// From now on the adapters carry nothing, and take next to no instructions: each work that is sent
// is complete at once, and each posted buffer has received again what it received last. For
// programs that count instructions, with one thread for all ports, and that use UD pairs only.
void only_pretend();

// Returns how many objects of adapters there are: contexts, memory, queue pairs, and so on.
size_t objects();

// The only adapter, which is called soft0, for as long as this lives.
struct OnlyAdapter {
  explicit OnlyAdapter(const AdapterFacts& facts = {.addresses = {ipv4(10, 9, 0, 1)}}) {
    clear();
    plug_in(facts);
  }
  OnlyAdapter(const OnlyAdapter&) = delete;
  ~OnlyAdapter() { clear(); }
};

}  // namespace urma::test::soft
