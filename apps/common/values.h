// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace urma::apps {

// The types of an option's value. `read` returns nothing if the word is not valid; `valid` names
// the valid words, for an error, and `choices` lists them, if there are few. They are strict,
// unlike the conversions of CLI11, which also accept signs, blanks, 0x10, octal 010 and "4 kb".

// A number of decimal digits.
struct WholeNumber {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;

  std::optional<uint64_t> read(std::string_view word) const;
  std::string valid() const;
};

// 1 to `most` bytes. K, M and G mean 2^10, 2^20 and 2^30.
struct Bytes {
  uint64_t most = UINT64_MAX;

  std::optional<uint64_t> read(std::string_view word) const;
  std::string valid() const;
};

// Seconds as a decimal number, with or without a fraction.
struct Seconds {
  double least = 0;
  double most = 0;

  std::optional<double> read(std::string_view word) const;
  std::string valid() const;
};

// Bits per second with their unit: Kbit, Mbit or Gbit, in powers of ten. The value is bytes per
// second.
struct BitRate {
  double least_bits = 0;
  double most_bits = 0;

  std::optional<uint64_t> read(std::string_view word) const;
  std::string valid() const;
};

// The host of a server. The device resolves the name later.
struct Host {
  std::optional<std::string> read(std::string_view word) const;
  std::string valid() const;
};

// One element of a table, chosen by its member `name`.
template <class Named>
struct OneOf {
  std::span<const Named> all;

  std::optional<const Named*> read(std::string_view word) const {
    for (const Named& one : all) {
      if (one.name == word) return &one;
    }
    return std::nullopt;
  }
  std::string valid() const { return fmt::format("one of {}", fmt::join(choices(), ", ")); }
  std::vector<std::string> choices() const {
    std::vector<std::string> names;
    for (const Named& one : all) names.emplace_back(one.name);
    return names;
  }
};
template <class Table>
OneOf(const Table& all) -> OneOf<typename Table::value_type>;

// One or more values, separated by commas.
template <class Value>
struct ListOf {
  Value each;

  auto read(std::string_view word) const {
    std::optional<std::vector<typename decltype(each.read(word))::value_type>> out(std::in_place);
    for (size_t at = 0; at <= word.size();) {
      const size_t comma = std::min(word.find(',', at), word.size());
      const auto one = each.read(word.substr(at, comma - at));
      if (!one) return decltype(out)();
      out->push_back(*one);
      at = comma + 1;
    }
    return out;
  }
  std::string valid() const { return each.valid() + ", or several with commas between them"; }
  auto choices() const requires requires { each.choices(); }
  { return each.choices(); }
};
template <class Value>
ListOf(Value) -> ListOf<Value>;

}  // namespace urma::apps
