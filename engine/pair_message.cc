// SPDX-License-Identifier: Apache-2.0
#include "engine/pair_message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace urma::engine {
namespace {

using Kind = PairMessage::Kind;
using Description = drivers::RemoteAccess::Description;

constexpr std::array<std::string_view, 8> pair_words = {
    "pair", "paired", "refused", "unpair", "unpaired", "key", "keyed", "unkeyed"};  // by kind

// Reads fields that are separated by one blank.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return out;
  }
  template <class Number>
  Number hex() {
    const std::string_view digits = word();
    uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, failure] = std::from_chars(digits.data(), end, value, 16);
    good_ = good_ && failure == std::errc{} && stop == end &&
            value <= std::numeric_limits<Number>::max();
    return static_cast<Number>(value);
  }
  Description description() {
    Description out{};
    const std::string_view digits = word();
    if (digits.size() != 2 * out.size()) {
      good_ = false;
      return out;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      uint8_t byte = 0;
      const char* const at = digits.data() + 2 * i;
      const auto [stop, failure] = std::from_chars(at, at + 2, byte, 16);
      good_ = good_ && failure == std::errc{} && stop == at + 2;
      out[i] = std::byte{byte};
    }
    return out;
  }
  // Returns whether all fields were right, and none is left.
  bool complete() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

void add_hex(std::string& line, uint64_t value) {
  std::array<char, 16> digits;
  const auto* const end = std::to_chars(digits.begin(), digits.end(), value, 16).ptr;
  line.append(" ").append(digits.begin(), static_cast<size_t>(end - digits.begin()));
}

void add_description(std::string& line, const Description& end) {
  constexpr std::string_view digits = "0123456789abcdef";
  line.append(" ");
  for (const std::byte one : end) {
    line.push_back(digits[std::to_integer<size_t>(one) >> 4]);
    line.push_back(digits[std::to_integer<size_t>(one) & 15]);
  }
}

MemoryRange read_range(Fields& fields) {
  MemoryRange out;
  out.address = fields.hex<uint64_t>();
  out.bytes = fields.hex<uint64_t>();
  out.id = TokenId(fields.hex<uint32_t>());
  out.token = TokenValue(fields.hex<uint32_t>());
  out.wanted = Rights(fields.hex<uint8_t>());
  return out;
}

drivers::RemoteAccess::Opened read_opened(Fields& fields) {
  drivers::RemoteAccess::Opened out;
  out.address = fields.hex<uint64_t>();
  out.bytes = fields.hex<uint64_t>();
  out.key = fields.hex<uint32_t>();
  return out;
}

}  // namespace

std::optional<PairMessage> read_pair_message(std::string_view line) {
  if (line.ends_with(' ')) return {};
  Fields fields(line);
  const auto* const word = std::find(pair_words.begin(), pair_words.end(), fields.word());
  if (word == pair_words.end()) return {};
  PairMessage out{.kind = static_cast<Kind>(word - pair_words.begin()),
                  .number = fields.hex<uint32_t>()};
  if (out.kind == Kind::pair || out.kind == Kind::paired) out.end = fields.description();
  if (out.kind == Kind::key) out.range = read_range(fields);
  if (out.kind == Kind::keyed) out.opened = read_opened(fields);
  const bool asks_one = out.range.wanted == Rights::read || out.range.wanted == Rights::write;
  if (!fields.complete() || (out.kind == Kind::key && (out.range.bytes == 0 || !asks_one))) {
    return {};
  }
  return out;
}

void write_pair_message(const PairMessage& message, std::string& line) {
  line.assign(pair_words[static_cast<size_t>(message.kind)]);
  add_hex(line, message.number);
  if (message.kind == Kind::pair || message.kind == Kind::paired) {
    add_description(line, message.end);
  }
  if (message.kind == Kind::key) {
    const MemoryRange& range = message.range;
    for (const uint64_t value : {range.address, range.bytes, uint64_t{number(range.id)},
                                 uint64_t{number(range.token)}, uint64_t(range.wanted)}) {
      add_hex(line, value);
    }
  }
  if (message.kind == Kind::keyed) {
    add_hex(line, message.opened.address);
    add_hex(line, message.opened.bytes);
    add_hex(line, message.opened.key);
  }
}

}  // namespace urma::engine
