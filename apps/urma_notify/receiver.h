// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>

#include "apps/common/captures.h"
#include "apps/common/dialogue.h"
#include "apps/urma_notify/transfer.h"

namespace urma::apps::notify {

// Receives files on one device. Its thread sleeps at the device's descriptor while nothing comes.
class Receiver {
 public:
  // `over` becomes true when another receiver has failed. Throws a Failure if the device cannot be
  // opened.
  Receiver(const std::string& device, int folder, std::atomic<bool>& over);
  Receiver(const Receiver&) = delete;

  // Prints the addresses of the receiver to stdout.
  void say_where();
  // Receives files until interrupted.
  void run();

 private:
  void handle(const Completion& completion);
  void handle_block(const Completion& arrival);
  static void store_next(Transfer& transfer);
  void handle_message(const Completion& arrival, const Message& question);
  void answer(Transfer& transfer, const Message& question, uint64_t block);
  void accept(const Completion& arrival, const Message& question);
  Message accepted(const Completion& arrival, const Message& question, const RemoteJetty& back);
  Message made(const Message& question);
  bool reply(Transfer& transfer, const Message& message);
  bool work_on_files();
  void finish(Transfer& transfer);
  void fail(Transfer& transfer, uint64_t id, const Failure& failure);
  void give_up_on(const Completion& arrival, std::string_view why);
  void sleep();
  void look_after_senders();
  void say_goodbye();
  Transfer* find(uint32_t number, const Completion& arrival);

  const std::string device_text_;
  const int folder_;
  std::atomic<bool>& over_;
  apps::Captures captures_{"urma_notify"};  // destroyed after the device
  Device device_;
  Dialogue dialogue_;
  std::list<Transfer> transfers_;
  uint32_t last_number_ = 0;
};

}  // namespace urma::apps::notify
