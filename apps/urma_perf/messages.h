// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/common/message.h"
#include "apps/urma_perf/case.h"
#include "apps/urma_perf/side.h"
#include "apps/urma_perf/stages.h"

namespace urma::apps::perf {

// The messages of client and server, one question and one answer at a time:
//
//   question -> answer
//   hello    -> welcome   versions and addresses of both sides
//   setup    -> ready     sets up a case; both have the memory and the Jetties of their sides
//   begin    -> begun     begins a round of works, or of the limit
//   end      -> report    ends the round; the report has what arrived
//   finish   -> totals    ends the case
//   ping     -> pong      nothing; the client measures how long the answer takes
//   bye      -> bye       the client leaves
// The server may answer any of them with failed (apps/common/message.h).
inline constexpr int protocol =
    5;  // incremented by every change that old readers do not understand

Wording wording();

void to_json(nlohmann::json& out, const SideDescription& in);
void from_json(const nlohmann::json& in, SideDescription& out);
void to_json(nlohmann::json& out, const Case& in);
void from_json(const nlohmann::json& in, Case& out);
void to_json(nlohmann::json& out, const Verdict& in);
void from_json(const nlohmann::json& in, Verdict& out);

// The bodies of these messages.
struct Hello {
  int speaks = protocol;
  std::string version;
  std::string jetty;     // the descriptor to which answers go
  std::string presence;  // descriptor of memory that exists as long as the client
  URMA_BODY(Hello, speaks, version, jetty, presence)
};
struct Welcome {
  std::string version;
  std::string device;  // the description of the server's device
  URMA_BODY(Welcome, version, device)
};
struct Ready {
  SideDescription side;
  std::string raw;  // the address of its raw socket; empty without --limit
  URMA_BODY(Ready, side, raw)
};
struct Setup {
  Case what;
  SideDescription side;
  std::string raw;
  URMA_BODY(Setup, what, side, raw)
};
struct Begin {
  bool limit = false;
  URMA_BODY(Begin, limit)
};
struct Report {
  uint64_t messages = 0;  // of which the server was notified
  uint64_t windows = 0;   // the sum of their windows
  Verdict verdict;
  double raw_bytes_per_second = 0;
  int64_t waited = 0;                    // ns for which the server waited for a processor
  std::optional<SideProfile> profile{};  // if the server's device is profiled

  // Adds the arrivals of another queue.
  void add(const Report& other) {
    messages += other.messages;
    windows += other.windows;
    verdict.add(other.verdict);
  }
};
void to_json(nlohmann::json& out, const Report& in);
void from_json(const nlohmann::json& in, Report& out);
struct Totals {
  std::map<std::string, uint64_t> counters;
  URMA_BODY(Totals, counters)
};

}  // namespace urma::apps::perf
