// SPDX-License-Identifier: Apache-2.0
#include "engine/name_message.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace urma::engine {
namespace {

constexpr std::array<std::string_view, 3> words = {"find", "found", "none"};  // by kind

std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::string_view word_of(NameMessage::Kind kind) { return words[static_cast<size_t>(kind)]; }

class Digits {
 public:
  explicit Digits(uint32_t number)
      : end_(std::to_chars(digits_.begin(), digits_.end(), number).ptr) {}

  std::string_view text() const { return {digits_.begin(), end_}; }

 private:
  std::array<char, 10> digits_;
  const char* end_;
};

}  // namespace

std::optional<NameMessage> read_name_message(std::string_view line) {
  const auto* const word = std::find(words.begin(), words.end(), take_word(line));
  if (word == words.end()) return {};
  const std::string_view digits = take_word(line);
  uint32_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc{} || end != digits.data() + digits.size()) return {};
  return NameMessage{static_cast<NameMessage::Kind>(word - words.begin()), number, line};
}

size_t bytes_of(const NameMessage& message) {
  const size_t rest = message.rest.empty() ? 0 : 1 + message.rest.size();
  return word_of(message.kind).size() + 1 + Digits(message.number).text().size() + rest;
}

void write_name_message(const NameMessage& message, std::string& line) {
  line.assign(word_of(message.kind)).append(" ").append(Digits(message.number).text());
  if (!message.rest.empty()) line.append(" ").append(message.rest);
}

}  // namespace urma::engine
