// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "plugins/nccl/sender.h"
#include "plugins/nccl/stage.h"

namespace urma::nccl {

// A recvComm: posts buffers to the sender at its peer, and notices when they have been filled. One
// thread at a time uses it.
class Receiver {
 public:
  // Makes a receiver for the sender that has greeted, and answers it. Errors: those of
  // Device::jetty and of Device::allocate.
  static Result<std::unique_ptr<Receiver>> make(SessionRef session, const Imported& sender);

  ~Receiver();

  // Posts `count` buffers, which are filled independently. `*request` is null if too many receives
  // are outstanding. Never blocks.
  Code receive(int count, void* const* data, const size_t* bytes, const int* tags,
               void* const* memories, Request** request);
  // Sets *done, and frees the request if it is done.
  Code test(Request& request, int* done, int* bytes);

 private:
  // One buffer of a receive.
  struct Target {
    std::byte* data;
    const Registration* memory;
    uint64_t generation;  // of the memory
    size_t bytes;         // how many have arrived
    bool filled;          // the data has arrived, and is in its place unless it is being copied
    Copier::Job* copying;
  };
  // The receive that is outstanding in a slot.
  struct Outstanding {
    Request request;
    Target targets[most_receives];
    uint64_t stage_mark;   // behind its parts of the stage
    bool posting = false;  // the slot is being written
  };

  Receiver(SessionRef session, Jetty jetty, Segment memory);
  Result<void> answer(const Imported& sender);
  void poll();
  void take(const Completion& done);
  void fill_all();
  bool fill(uint32_t number);
  bool place(Target& target, const ReceiveBuffer& buffer, uint64_t word);
  Code announce(ReceiveBuffer& buffer, const void* data, size_t bytes, int tag,
                const Registration* memory);

  // The Jetty of the link ends its works before the memory that they use is gone, so this is first.
  Segment memory_;
  ReceiverBoard& board_;
  Stage stage_;
  std::array<Slot, slots> out_{};  // what is written to the sender's board
  Greeting greeting_{};
  std::array<Outstanding, slots> outstanding_{};
  uint64_t oldest_ = 0;           // the receives from this one on may have parts of the stage
  uint64_t next_ = 0;             // the number of the next receive
  Code misused_ = Code::success;  // why data cannot be put into its place
  Link link_;
};

}  // namespace urma::nccl
