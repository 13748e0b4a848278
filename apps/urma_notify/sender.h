// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "apps/common/asker.h"
#include "apps/common/dialogue.h"
#include "apps/urma_notify/options.h"
#include "apps/urma_notify/outgoing.h"
#include "apps/urma_notify/progress.h"
#include "apps/urma_notify/sha256.h"
#include "apps/urma_notify/transfer.h"

namespace urma::apps::notify {

// How the sending of one file or folder ended.
struct Sent {
  enum class Result : uint8_t { sent, same, incomplete, failed };

  std::string name;
  bool folder = false;
  Result result = Result::failed;
  uint64_t bytes = 0;
  uint64_t resumed = 0;  // bytes that the receiver had before
  std::string sha256{};  // of the bytes; empty for a folder and after a failure
  Exit exit = Exit::ok;  // of a failure
  std::string error{};
  uint64_t missing = 0;  // incomplete: the entries of the folder that are not at the receiver
};

// Sends files to one receiver, over one device: compares the blocks that the receiver has, and
// sends the others. After a Failure it is of no more use: another one is made.
class Sender {
 public:
  Sender(const Options& options, const std::string& host, Device& device, const Voice& voice);
  Sender(const Sender&) = delete;

  // Finds the receiver.
  void meet();
  // Sends one file, or a folder of which `missing` entries are not at the receiver. Throws a
  // Failure; with Exit::peer_lost another attempt may succeed.
  Sent send(const Item& item, uint64_t missing);
  // Returns whether the receiver has answered.
  bool reached() const { return reached_; }

 private:
  struct Slot {
    std::vector<std::byte> memory = std::vector<std::byte>(slot_bytes);
    bool lent = false;    // the library may still read this buffer
    bool filled = false;  // the slot at the receiver is in use
  };

  Sent send_file(const Item& item);
  Sent send_folder(const Item& item, uint64_t missing);
  void offer(const Outgoing& file, const std::string& name);
  uint64_t compare(const Outgoing& file);
  void send_from(const Outgoing& file, uint64_t first, Progress& progress);
  bool send_block(const Outgoing& file, uint64_t number);
  std::string finish();
  void stop();
  template <class Answer>
  Answer ask(const std::string& type, nlohmann::json body);
  void turn(std::chrono::milliseconds limit);
  void take(const Completion& completion);
  [[noreturn]] void lose(Status status);

  const Options& options_;
  const std::string host_;
  Device& device_;
  const Voice& voice_;
  Dialogue dialogue_;
  Asker asker_;
  Accepted accepted_;
  RemoteSegment staging_;
  std::array<Slot, slots> slots_;
  Sha256 digest_;              // of all blocks that were read so far
  uint64_t hashed_ = 0;        // the number of these blocks
  uint64_t acknowledged_ = 0;  // acknowledged blocks
  Clock::time_point heard_ = Clock::now();
  bool reached_ = false;
  BlockHead probe_{};   // where such a read stores what it read
  bool asked_ = false;  // a read of the receiver's memory, as a probe, is outstanding
};

}  // namespace urma::apps::notify
