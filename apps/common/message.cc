// SPDX-License-Identifier: Apache-2.0
#include "apps/common/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/common/program.h"

namespace urma::apps {

using nlohmann::json;

std::string to_text(const Message& message, const Wording& wording) {
  std::string text = json{{"id", message.id}, {"type", message.type}, {"body", message.body}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= wording.most_bytes) return text;
  throw Failure(Exit::usage,
                fmt::format("a message \"{}\" has {} bytes, more than {}. Fix: {}", message.type,
                            text.size(), wording.most_bytes, wording.shorten));
}

Message parse_message(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw NotUnderstood("it is not JSON");
  if (!parsed.is_object()) throw NotUnderstood("it is not a JSON object");
  Message message;
  read_field(parsed, "id", message.id);
  read_field(parsed, "type", message.type);
  if (!parsed.contains("body")) throw NotUnderstood("\"body\" is missing");
  message.body = parsed["body"];
  return message;
}

Failure not_understood(const std::string& peer, const std::string& type, const NotUnderstood& why,
                       const Wording& wording) {
  return {Exit::error,
          fmt::format("the answer of {} to \"{}\" is not understood: {}. Fix: use the same {} on "
                      "both sides",
                      peer, type, why.what(), wording.program)};
}

std::string check_version(const Message& greeting, const Speaker& speaker, const Wording& wording) {
  int speaks = 0;
  std::string version;
  read_field(greeting.body, "speaks", speaks);
  read_field(greeting.body, "version", version);
  if (speaks == speaker.protocol) return version;
  throw Failure(
      Exit::version_mismatch,
      fmt::format("it speaks version {} of {}'s protocol (liburma {}), this {} version {} "
                  "(liburma {}). Fix: upgrade the {}",
                  speaker.protocol, wording.program, library_version(), speaker.peer, speaks,
                  version, speaks < speaker.protocol ? speaker.peer : speaker.self));
}

void to_json(json& out, const Failed& in) {
  out = {{"exit", static_cast<int>(in.exit)}, {"message", in.message}, {"again", in.again}};
}

void from_json(const json& in, Failed& out) {
  constexpr std::array known = {Exit::error,
                                Exit::usage,
                                Exit::threshold,
                                Exit::wrong_bytes,
                                Exit::peer_lost,
                                Exit::version_mismatch,
                                Exit::capture_incomplete,
                                Exit::interrupted};
  int64_t exit = 0;
  read_field(in, "exit", exit);
  const auto* const found =
      std::ranges::find(known, exit, [](Exit one) { return static_cast<int64_t>(one); });
  out.exit = found == known.end() ? Exit::error : *found;
  read_field(in, "message", out.message);
  read_optional(in, "again", out.again);
}

Message failed_message(uint64_t id, Failed why) {
  return {.id = id, .type = "failed", .body = std::move(why)};
}

void refuse_value(std::string_view name, std::string_view wanted) {
  throw NotUnderstood(fmt::format("\"{}\" is not {}", name.substr(0, 40), wanted));
}

std::string take_name(std::string_view& names) {
  const std::string_view name = names.substr(0, names.find(','));
  names.remove_prefix(std::min(name.size() + 2, names.size()));
  return std::string(name);
}

bool is_whole(const json& in, int64_t least, uint64_t most) {
  if (in.is_number_unsigned()) return in.get<uint64_t>() <= most;
  return in.is_number_integer() && in.get<int64_t>() >= least;
}

}  // namespace urma::apps
