// SPDX-License-Identifier: Apache-2.0
#include "apps/common/values.h"

#include <charconv>

#include "urma/urma.hpp"

namespace urma::apps {
namespace {

// The number at the beginning of a word, and the rest of the word.
template <class Number>
struct Parsed {
  Number number{};
  std::string_view rest;
};
template <class Number>
std::optional<Parsed<Number>> parse(std::string_view word) {
  Parsed<Number> out;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), out.number);
  if (failure != std::errc{}) return std::nullopt;
  out.rest = word.substr(static_cast<size_t>(end - word.data()));
  return out;
}

std::optional<int> shift_of(std::string_view unit) {
  if (unit.empty()) return 0;
  if (unit == "K") return 10;
  if (unit == "M") return 20;
  if (unit == "G") return 30;
  return std::nullopt;
}

struct BitUnit {
  std::string_view name;
  double bits;
};
constexpr BitUnit bit_units[] = {{"Gbit", 1e9}, {"Mbit", 1e6}, {"Kbit", 1e3}};

std::string bit_rate_text(double bits) {
  for (const BitUnit& unit : bit_units) {
    if (bits >= unit.bits) return fmt::format("{:g}{}", bits / unit.bits, unit.name);
  }
  return fmt::format("{:g}Kbit", bits / 1e3);
}

}  // namespace

std::optional<uint64_t> WholeNumber::read(std::string_view word) const {
  const auto found = parse<uint64_t>(word);
  if (!found || !found->rest.empty()) return std::nullopt;
  if (found->number < least || found->number > most) return std::nullopt;
  return found->number;
}

std::string WholeNumber::valid() const {
  return fmt::format("a whole number from {} to {}", least, most);
}

std::optional<uint64_t> Bytes::read(std::string_view word) const {
  const auto found = parse<uint64_t>(word);
  if (!found || found->number == 0) return std::nullopt;
  const auto shift = shift_of(found->rest);
  if (!shift || found->number > most >> *shift) return std::nullopt;
  return found->number << *shift;
}

std::string Bytes::valid() const {
  return fmt::format("1 to {} bytes, as 64, 4K or 1M", size_text(most));
}

// The comparison is written so that a NaN is refused, too.
std::optional<double> Seconds::read(std::string_view word) const {
  const auto found = parse<double>(word);
  if (!found || !found->rest.empty()) return std::nullopt;
  if (!(found->number >= least && found->number <= most)) return std::nullopt;
  return found->number;
}

std::string Seconds::valid() const {
  return fmt::format("seconds from {} to {}, as 2 or 0.5", least, most);
}

std::optional<uint64_t> BitRate::read(std::string_view word) const {
  const auto found = parse<double>(word);
  if (!found) return std::nullopt;
  for (const BitUnit& unit : bit_units) {
    const double bits = found->number * unit.bits;
    if (found->rest != unit.name || !(bits >= least_bits && bits <= most_bits)) continue;
    return static_cast<uint64_t>(bits / 8);
  }
  return std::nullopt;
}

std::string BitRate::valid() const {
  return fmt::format("{} to {}, as 100Mbit or 2.5Gbit", bit_rate_text(least_bits),
                     bit_rate_text(most_bits));
}

std::optional<std::string> Host::read(std::string_view word) const {
  if (word.find('/') != word.npos) return std::nullopt;
  return std::string(word);
}

std::string Host::valid() const { return "localhost, ADDRESS or ADDRESS:PORT"; }

}  // namespace urma::apps
