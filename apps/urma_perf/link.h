// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "apps/common/asker.h"
#include "apps/common/dialogue.h"
#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/messages.h"

namespace urma::apps::perf {

// A server that has not answered for so long is lost. On a busy machine it may not run for some
// seconds, so the client's messages may take as long.
inline constexpr int64_t answered_in = 10 * second;

// The client's connection to the server. It asks one question at a time and returns the answer, or
// throws a Failure. It sends "bye" when it is destroyed.
class Link {
 public:
  // HOST is localhost, ADDRESS or ADDRESS:PORT. `speaks` is `protocol`, except in tests.
  Link(Device& device, const std::string& host, const Service& service, int speaks);
  ~Link();
  Link(const Link&) = delete;

  const Welcome& welcome() const { return welcome_; }
  PeerId server() const { return asker_.to().peer; }

  template <class Answer>
  Answer ask(const std::string& type, nlohmann::json body, int64_t patience = answered_in) {
    return asker_.read<Answer>(exchange(type, std::move(body), patience));
  }
  void tell(const std::string& type, nlohmann::json body, int64_t patience = answered_in) {
    exchange(type, std::move(body), patience);
  }

  // Writes to the server's memory and waits until the write has completed.
  void write(std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset);
  // Reads the server's memory and waits until the read has completed.
  void read(std::span<std::byte> to, const RemoteSegment& from, uint64_t offset);
  // Runs the engine once. For loops that do not otherwise poll an inlined device.
  void keep_alive();

 private:
  Message exchange(const std::string& type, nlohmann::json body, int64_t patience);
  void run(const Work& work, std::string_view doing);
  void take(const Completion& completion);

  std::string host_;
  Dialogue dialogue_;
  Asker asker_;
  Segment presence_;
  Welcome welcome_;
};

}  // namespace urma::apps::perf
