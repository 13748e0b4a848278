#pragma once

#include <array>
#include <string>
#include <vector>

#include "apps/common/asker.h"
#include "apps/common/dialogue.h"
#include "apps/urma_notify/options.h"
#include "apps/urma_notify/outgoing.h"
#include "apps/urma_notify/progress.h"
#include "apps/urma_notify/transfer.h"

namespace urma::apps::notify {

// One attempt to send a file: finds the receiver, compares the blocks that it has, and sends the
// others.
class Sender {
 public:
  Sender(const Options& options, const Outgoing& file, Device& device);
  Sender(const Sender&) = delete;

  // Returns Exit::ok or Exit::interrupted. Throws a Failure otherwise; with Exit::peer_lost another
  // attempt may succeed.
  Exit run();
  // Returns whether the receiver has been reached.
  bool reached() const { return accepted_.transfer != 0; }

 private:
  struct Slot {
    std::vector<std::byte> memory = std::vector<std::byte>(slot_bytes);
    bool lent = false;    // the library may still read this buffer
    bool filled = false;  // the slot at the receiver is in use
  };

  void offer();
  uint64_t compare();
  void send_from(uint64_t first, Progress& progress);
  bool send_block(uint64_t number);
  void finish(const std::string& type);
  void stop();
  template <class Answer>
  Answer ask(const std::string& type, nlohmann::json body);
  void turn(std::chrono::milliseconds limit);
  void take(const Completion& completion);
  [[noreturn]] void lose(Status status);
  uint32_t check_of_block(uint64_t number);

  const Options& options_;
  const Outgoing& file_;
  Device& device_;
  Dialogue dialogue_;
  Asker asker_;
  Accepted accepted_;
  RemoteSegment staging_;
  std::array<Slot, slots> slots_;
  std::vector<uint32_t> checks_;  // checks of all blocks that were read so far
  uint64_t acknowledged_ = 0;     // acknowledged blocks
  Clock::time_point heard_ = Clock::now();
  bool asked_ = false;  // a read of the receiver's memory, as a probe, is outstanding
};

}  // namespace urma::apps::notify
