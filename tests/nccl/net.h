// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of NCCL that uses a network plugin: it loads the plugin, takes one version of the
// interface, and calls it in this order, polling whatever is not done yet.

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/nccl/abi.h"

namespace urma::test {

using nccl::Code;

// The 128 bytes that NCCL carries from the listening process to the connecting one.
struct NetHandle {
  alignas(8) std::byte bytes[nccl::handle_bytes];
};

// The properties that all versions have.
struct NetProperties {
  std::string name;
  bool is_virtual = false;
  int pointers = 0;
  bool global = false;
  int speed_mbps = 0;
  int most_comms = 0;
  int most_receives = 0;
};

// A plugin that is loaded, and one version of its interface. Calls pass through unchanged.
class Net {
 public:
  // Ends the program if the file cannot be loaded, or does not have the version.
  Net(const std::string& file, int version);
  Net(const Net&) = delete;
  ~Net();

  static constexpr int oldest = 8;
  static constexpr int newest = 12;

  // Returns whether the plugin exports a symbol of this name.
  bool exports(const char* symbol) const;

  std::string name() const;
  Code init(void** context) const;
  // Versions before 11 have no finalize: then this does nothing.
  Code finalize(void* context) const;
  int devices() const;
  NetProperties properties() const;
  Code listen(void* context, NetHandle& handle, void** listener) const;
  Code connect(void* context, NetHandle& handle, void** sender) const;
  Code accept(void* listener, void** receiver) const;
  Code add(void* comm, void* data, size_t bytes, void** memory) const;
  Code remove(void* comm, void* memory) const;
  Code isend(void* sender, void* data, size_t bytes, int tag, void* memory, void** request) const;
  // One buffer.
  Code irecv(void* receiver, void* data, size_t bytes, int tag, void* memory, void** request) const;
  Code irecv(void* receiver, std::vector<void*> data, std::vector<size_t> bytes,
             std::vector<int> tags, std::vector<void*> memories, void** request) const;
  Code iflush(void* receiver, void* data, int bytes, void* memory, void** request) const;
  Code test(void* request, int* done, int* bytes) const;
  Code close_send(void* sender) const;
  Code close_receive(void* receiver) const;
  Code close_listen(void* listener) const;

  // The lines of level WARN that the plugins of this process have logged since the last call.
  static std::vector<std::string> warnings();

 private:
  template <class Call>
  auto with(Call&& call) const;

  void* const library_;
  const int version_;
  void* const symbol_;
};

// A connection within one process: what two ranks have.
struct Pair {
  void* listener = nullptr;
  void* sender = nullptr;
  void* receiver = nullptr;
};
Pair make_pair(const Net& net, void* context);
void close_pair(const Net& net, const Pair& pair);

// How a request ended.
struct Ended {
  Code code = Code::success;
  bool done = false;
  std::vector<int> bytes;  // of each buffer
};
// Polls the request until it is done or fails, for up to `limit`.
Ended finish(const Net& net, void* request, std::chrono::milliseconds limit);
Ended finish(const Net& net, void* request);

// Starts a send, asking again while its receive is missing. Ends the program after 20 s.
void* send(const Net& net, void* sender, void* data, size_t bytes, int tag, void* memory);
// Starts a receive of one buffer.
void* receive(const Net& net, void* receiver, void* data, size_t bytes, int tag, void* memory);

// These count the open descriptors and the threads of this process.
size_t descriptors();
size_t threads();
// The resident memory, in MiB, and whether it is larger now by more than what varies. Sanitizers
// keep memory that was freed, so there it never counts as larger.
double resident_mib();
bool resident_has_grown(double mib_before);

// Fills memory with bytes that depend on their position and the number, and checks them.
void fill(std::vector<std::byte>& memory, unsigned number);
bool is_filled(const std::byte* memory, size_t bytes, unsigned number);

// The devices of the tests: a window that no other program uses, and UDP. The window is removed by
// `remove_window`.
std::vector<std::string> devices_of_tests();
void remove_window();

}  // namespace urma::test
