#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/failure.h"
#include "apps/urma_perf/side.h"

namespace urma::perf {

// Client and server exchange JSON text in sends, one question and one answer at a time. Every
// message is {"id": n, "type": "...", "body": {...}}; an answer has the id of its question.
//
//   question -> answer
//   hello    -> welcome   versions and addresses of both sides
//   setup    -> ready     sets up a case; both have the memory and the Jetties of their sides
//   begin    -> begun     begins a round of works, or of the limit
//   end      -> report    ends the round; the report has what arrived
//   finish   -> totals    ends the case
//   bye      -> bye       the client leaves
// The server may answer any of them with failed {exit, message}.
inline constexpr int protocol =
    2;  // incremented by every change that old readers do not understand
inline constexpr size_t most_message_bytes = 16 * 1024;

// The version of the library that this program is built with.
std::string library_version();

struct Message {
  uint64_t id = 0;
  std::string type;
  nlohmann::json body;
};
std::string to_text(const Message& message);
// Throws a Failure if the text is not a message.
Message parse_message(const std::string& text);

struct Hello {
  int speaks = protocol;
  std::string version;
  std::string jetty;     // the descriptor to which answers go
  std::string presence;  // descriptor of memory that exists as long as the client
};
struct Welcome {
  std::string version;
  std::string device;  // the description of the server's device
};
struct Ready {
  SideDescription side;
  std::string raw;  // the address of its raw socket; empty without --limit
};
struct Setup {
  Case what;
  SideDescription side;
  std::string raw;
};
struct Begin {
  bool limit = false;
};
struct Report {
  uint64_t messages = 0;  // of which the server was notified
  uint64_t windows = 0;   // the sum of their windows
  Verdict verdict;
  double raw_bytes_per_second = 0;
  int64_t waited = 0;  // ns for which the server waited for a processor
};
struct Totals {
  std::map<std::string, uint64_t> counters;
};
struct Failed {
  Exit exit = Exit::error;
  std::string message;
};

// `from_json` of these fails, as all of nlohmann's, by throwing nlohmann::json::exception.
void to_json(nlohmann::json& out, const SideDescription& in);
void from_json(const nlohmann::json& in, SideDescription& out);
void to_json(nlohmann::json& out, const Case& in);
void from_json(const nlohmann::json& in, Case& out);
void to_json(nlohmann::json& out, const Verdict& in);
void from_json(const nlohmann::json& in, Verdict& out);
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, speaks, version, jetty, presence)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Welcome, version, device)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ready, side, raw)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Setup, what, side, raw)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Begin, limit)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, messages, windows, verdict, raw_bytes_per_second, waited)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Totals, counters)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Failed, exit, message)

}  // namespace urma::perf
