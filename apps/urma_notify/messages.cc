#include "apps/urma_notify/messages.h"

#include <fmt/format.h>

namespace urma::notify {

using nlohmann::json;

std::string library_version() { return URMA_VERSION; }

std::string to_text(const Message& message) {
  std::string text;
  try {
    text = json{{"id", message.id}, {"type", message.type}, {"body", message.body}}.dump();
  } catch (const json::exception&) {
    throw Failure(Exit::usage, "the name is not UTF-8. Fix: give it another one with --as NAME");
  }
  if (text.size() <= most_message_bytes) return text;
  throw Failure(Exit::usage, fmt::format("a message \"{}\" has {} bytes, more than {}. Fix: give a "
                                         "shorter name with --as NAME",
                                         message.type, text.size(), most_message_bytes));
}

Message parse_message(const std::string& text) {
  try {
    const json parsed = json::parse(text);
    return {parsed.at("id"), parsed.at("type"), parsed.at("body")};
  } catch (const json::exception& e) {
    throw Failure(Exit::error,
                  fmt::format("a message is not understood: {}. Fix: use the same urma_notify on "
                              "both sides",
                              e.what()));
  }
}

}  // namespace urma::notify
