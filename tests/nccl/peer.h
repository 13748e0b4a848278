// SPDX-License-Identifier: Apache-2.0
#pragma once

// A second process that plays another rank: it runs this program with other arguments.

#include <sys/types.h>

#include "tests/nccl/net.h"

namespace urma::test {

// The other process, and a socket to it, which is what NCCL's bootstrap is between ranks.
class Peer {
 public:
  // Starts this program with the arguments ROLE, PLUGIN and the number of its end of the socket.
  Peer(const std::string& role, const std::string& plugin);
  Peer(const Peer&) = delete;
  // Kills the process if it still runs.
  ~Peer();

  int channel() const { return channel_; }
  // Ends the process at once, and waits until it has ended.
  void kill();
  // Waits for the process. Returns its exit status, or -1 if a signal ended it.
  int wait();

 private:
  int channel_ = -1;
  pid_t pid_ = -1;
};

// The connections of a rank to one peer: one in each direction.
struct Connection {
  void* context = nullptr;
  Pair pair;
};
// Exchanges handles over the socket, and connects both ways, as NCCL's transport does.
Connection connect_ranks(const Net& net, int channel);
void close_ranks(const Net& net, const Connection& connection);

// A rank that is connected to its peer, with memory to send from and memory to receive into. Ends
// the program if a call fails.
class Rank {
 public:
  // `channel` is the socket to the peer.
  Rank(const std::string& plugin, int channel, size_t bytes);
  Rank(const Rank&) = delete;
  ~Rank();

  // These start to send and to receive up to `bytes` bytes at this offset of the memory.
  void* send(size_t bytes, size_t at = 0);
  void* receive(size_t bytes, size_t at = 0);

  Net net;
  Connection connection;
  std::vector<std::byte> out;
  std::vector<std::byte> in;
  void* out_memory = nullptr;
  void* in_memory = nullptr;
};

}  // namespace urma::test
