#pragma once

#include <string>

#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/mailbox.h"

namespace urma::perf {

// The client's connection to the server. It asks one question at a time and returns the answer, or
// throws a Failure. It sends "bye" when it is destroyed.
class Link {
 public:
  // HOST is localhost, ADDRESS or ADDRESS:PORT. `speaks` is `protocol`, except in tests.
  Link(Device& device, const std::string& host, const Service& service, int speaks);
  ~Link();
  Link(const Link&) = delete;

  const Welcome& welcome() const { return welcome_; }
  PeerId server() const { return server_.peer; }

  template <class Answer>
  Answer ask(const std::string& type, nlohmann::json body, int64_t patience = 10 * second) {
    try {
      return exchange(type, std::move(body), patience).body.get<Answer>();
    } catch (const nlohmann::json::exception& e) {
      throw not_understood(type, e.what());
    }
  }
  void tell(const std::string& type, nlohmann::json body) {
    exchange(type, std::move(body), 10 * second);
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
  Failure not_understood(const std::string& type, const char* why) const;

  std::string host_;
  Mailbox mailbox_;
  Segment presence_;
  RemoteJetty server_;
  Welcome welcome_;
  uint64_t next_id_ = 1;
};

}  // namespace urma::perf
