// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/capi/objects.h"
#include "apps/urma_ping/options.h"
#include "urma/core/time.h"

namespace urma::apps::ping {

// Sends messages to Jetty 5 at an EID, and receives the answers. It neither prints nor counts.
class Pinger {
 public:
  enum class Answer : uint8_t { arrived, wrong_bytes, none, interrupted };

  // Opens the device. Throws a Failure.
  explicit Pinger(const Options& options);

  const std::string& device() const { return device_; }
  const urma_eid_t& source() const { return context_->eid; }

  // Finds the process at the EID, unless it is known. Takes up to 0.5 s. Returns false if no
  // process answers there; `why` is the reason. Throws a Failure if none ever will.
  bool find(std::string& why);
  // Sends a message with this number, and waits for its answer until `end`, or without limit.
  // `why`: what became of the message if there was no answer, as far as it is known.
  Answer exchange(uint64_t number, std::optional<Time> end, std::string& why);

 private:
  void open(const urma_eid_t& source);
  void make_queues();
  void post_receive(uint64_t slot);
  // Returns false if too many messages wait for an answer.
  bool send(uint64_t number);
  Answer take(uint64_t number, bool& more);
  void note_failures(std::string& why);
  bool wait(std::optional<Time> end);

  const urma_eid_t to_;
  const uint32_t bytes_;
  std::string device_;
  std::vector<char> memory_;  // the message, and a slot for each posted receive
  capi::OwnContext context_;
  capi::OwnSegment segment_;
  capi::OwnJfce events_;
  capi::OwnJfc sent_;
  capi::OwnJfc arrived_;
  capi::OwnJfr receives_;
  capi::OwnJetty jetty_;
  capi::OwnTarget target_;  // null until it was found
};

}  // namespace urma::apps::ping
