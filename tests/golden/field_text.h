// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "tests/golden/header_fields.h"
#include "tests/golden/hex.h"

namespace urma::test {

// Fields as text: a number is 0x..., an EID is 32 hexadecimal digits, and a bitmap is the list of
// its ones, as 1,5,63.

using BitmapWords = decltype(Saetph::bits);

// Writes " name=value" for each field.
class FieldWriter {
 public:
  template <class Value>
  void operator()(const char* name, const Value& value) {
    text_ += std::string(" ") + name + "=" + text_of(value);
  }
  const std::string& text() const { return text_; }

 private:
  template <class Number>
  static std::string text_of(const Number& number) {
    char digits[16];
    const auto end = std::to_chars(digits, std::end(digits), static_cast<uint64_t>(number), 16);
    return "0x" + std::string(digits, end.ptr);
  }
  static std::string text_of(const Eid& eid) { return to_hex(eid.bytes); }
  static std::string text_of(const BitmapWords& words) {
    std::string text;
    for (size_t bit = 0; bit < words.size() * 64; ++bit) {
      if (words[bit / 64] >> bit % 64 & 1) text += (text.empty() ? "" : ",") + std::to_string(bit);
    }
    return text;
  }

  std::string text_;
};

// Sets the fields that are named. The others keep their values.
class FieldReader {
 public:
  explicit FieldReader(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  template <class Value>
  void operator()(const char* name, Value& value) {
    const auto at = values_.find(name);
    if (at == values_.end()) return;
    read(at->second, value);
    values_.erase(at);
  }
  // Fields that were named but do not exist.
  const std::map<std::string, std::string>& unread() const { return values_; }

 private:
  template <class Number>
  static void read(const std::string& text, Number& value) {
    value = static_cast<Number>(std::stoull(text, nullptr, 0));
  }
  static void read(const std::string& text, Eid& eid) {
    const auto bytes = from_hex(text);
    std::copy_n(bytes.begin(), 16, eid.bytes.begin());
  }
  static void read(const std::string& text, BitmapWords& words) {
    for (size_t at = 0; at < text.size();) {
      size_t digits = 0;
      const auto bit = std::stoul(text.substr(at), &digits);
      words.at(bit / 64) |= uint64_t{1} << bit % 64;
      at += digits + 1;
    }
  }

  std::map<std::string, std::string> values_;
};

template <class Header>
std::string fields_text(Header header) {
  FieldWriter writer;
  visit_fields(header, writer);
  return writer.text();
}

}  // namespace urma::test
