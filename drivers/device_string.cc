// SPDX-License-Identifier: Apache-2.0
#include "drivers/device_string.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace urma::drivers {
namespace {

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// Parses the text in one pass. Each error quotes its position.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<DeviceString> device() {
    DeviceString out;
    out.text = text_;
    out.offset = at_;
    out.name = word();
    if (out.name.empty()) return fail("a driver's name is missing here");
    if (peek() == '(') {
      ++at_;
      if (wrapper_address(out)) {
        if (auto problem = options(out, ',')) return *problem;
      }
      if (peek() != ')') return fail("the parenthesis is not closed here");
      ++at_;
      if (peek() != ':') return fail("a colon and the device that is wrapped are missing here");
      ++at_;
      // A plus sign separates devices only within paths(); elsewhere it is part of an address.
      const bool joins = out.name == "paths" && !joined_;
      joined_ = joined_ || joins;
      Result<DeviceString> inner = device();
      if (!inner) return inner.error();
      out.inner = std::make_unique<DeviceString>(std::move(*inner));
      while (joins && peek() == '+') {
        ++at_;
        Result<DeviceString> other = device();
        if (!other) return other.error();
        out.others.push_back(std::move(*other));
      }
      if (joins && at_ != text_.size()) return fail("this is not understood");
      return out;
    }
    if (peek() != ':') return fail("a colon is missing here");
    ++at_;
    out.address_offset = at_;
    const size_t end = std::min(text_.find_first_of(joined_ ? "?+" : "?", at_), text_.size());
    out.address = text_.substr(at_, end - at_);
    at_ = end;
    if (peek() == '?') {
      ++at_;
      if (auto problem = options(out, '&')) return *problem;
    }
    if (at_ != text_.size() && !ends_joined()) return fail("this is not understood");
    return out;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool ends_joined() const { return joined_ && peek() == '+'; }

  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() && name_character(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Reads the address in parentheses, if there is one, and the comma behind it. Returns whether
  // options follow.
  bool wrapper_address(DeviceString& out) {
    out.address_offset = at_;
    const char first = peek();
    if (first != '[' && first != ':' && (first < '0' || first > '9')) return first != ')';
    const size_t end = std::min(text_.find_first_of(",)", at_), text_.size());
    out.address = text_.substr(at_, end - at_);
    at_ = end;
    if (peek() != ',') return false;
    ++at_;
    return true;
  }

  std::optional<Error> options(DeviceString& out, char separator) {
    for (;;) {
      DeviceString::Option option;
      option.offset = at_;
      option.key = word();
      if (option.key.empty()) return fail("an option's name is missing here").error();
      if (peek() != '=') return fail("\"=\" and the option's value are missing here").error();
      ++at_;
      option.value_offset = at_;
      while (at_ < text_.size() && text_[at_] != separator && text_[at_] != ')' && !ends_joined()) {
        ++at_;
      }
      option.value = text_.substr(option.value_offset, at_ - option.value_offset);
      if (option.value.empty()) return fail("the option's value is missing here").error();
      for (const auto& other : out.options) {
        if (other.key != option.key) continue;
        at_ = option.offset;
        return fail("this option is given twice").error();
      }
      out.options.push_back(std::move(option));
      if (peek() != separator) return std::nullopt;
      ++at_;
    }
  }

  Result<DeviceString> fail(std::string_view why) const {
    DeviceString device;
    device.text = text_;
    return device_error(device, at_, why);
  }

  std::string_view text_;
  size_t at_ = 0;
  bool joined_ = false;  // within paths()
};

template <class Number>
std::optional<Number> parse(std::string_view text, std::string_view& rest) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{}) return std::nullopt;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

struct Unit {
  std::string_view name;
  double factor;
};

// Returns the number in front of one of these units, times its factor. Returns nothing if the text
// is something else, or the product is not from `least` to `most`.
std::optional<double> scaled(std::string_view text, std::span<const Unit> units, double least,
                             double most) {
  std::string_view rest;
  const auto number = parse<double>(text, rest);
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& known) { return known.name == rest; });
  if (!number || unit == units.end()) return std::nullopt;
  const double product = *number * unit->factor;
  return product >= least && product <= most ? std::optional(product) : std::nullopt;
}

// ---- the values of options: each returns nothing if the text is not one

std::optional<double> parse_fraction(std::string_view text) {
  std::string_view unit;
  const auto number = parse<double>(text, unit);
  if (!number || (!unit.empty() && unit != "%")) return std::nullopt;
  const double fraction = *number / (unit == "%" ? 100 : 1);
  return fraction >= 0 && fraction <= 1 ? std::optional(fraction) : std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  constexpr Unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  constexpr double longest = 3600e9;
  const auto nanoseconds = scaled(text, units, 0, longest);
  if (!nanoseconds) return std::nullopt;
  return Duration(static_cast<int64_t>(*nanoseconds));
}

std::optional<uint64_t> parse_number(std::string_view text) {
  std::string_view rest;
  const auto number = parse<uint64_t>(text, rest);
  return rest.empty() ? number : std::nullopt;
}

std::optional<uint64_t> parse_bit_rate(std::string_view text) {
  constexpr Unit units[] = {{"Kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
  constexpr double least = 1e4;
  constexpr double most = 1e13;
  const auto bits = scaled(text, units, least, most);
  if (!bits) return std::nullopt;
  return static_cast<uint64_t>(*bits);
}

std::optional<bool> parse_flag(std::string_view text) {
  if (text != "yes" && text != "no") return std::nullopt;
  return text == "yes";
}

std::optional<Eid> parse_eid(std::string_view text) {
  const Result<Eid> address = parse_address(text);
  return address ? std::optional(*address) : std::nullopt;
}

}  // namespace

Result<DeviceString> parse_device_string(std::string_view text) {
  constexpr size_t longest = 512;
  if (text.size() > longest) {
    return Error{Status::invalid_argument,
                 "the device string has " + std::to_string(text.size()) +
                     " characters. Fix: shorten it to 512, for example by a shorter path"};
  }
  return Parser(text).device();
}

Error device_error(const DeviceString& device, size_t offset, std::string_view why) {
  constexpr std::string_view general =
      ". Fix: write DRIVER:ADDRESS?OPTION=VALUE&..., for example udp:127.0.0.1 or "
      "fault(loss=5%):udp:[::1]?mtu=4096";
  const bool has_fix = why.find(". Fix: ") != why.npos;
  return {Status::invalid_argument,
          "device \"" + device.text + "\", at character " + std::to_string(offset + 1) + " (\"" +
              device.text.substr(std::min(offset, device.text.size()), 24) +
              "\"): " + std::string(why) + std::string(has_fix ? "" : general)};
}

const DeviceString::Option* OptionReader::take(std::string_view key, std::string expected,
                                               const OptionSays& says) {
  rows_.push_back({.key = std::string(key),
                   .expected = std::move(expected),
                   .value = {},
                   .given = false,
                   .meaning = std::string(says.meaning)});
  for (size_t i = 0; i < device_.options.size(); ++i) {
    if (device_.options[i].key != key) continue;
    taken_[i] = true;
    rows_.back().given = true;
    return &device_.options[i];
  }
  return nullptr;
}

// Notes the value in effect of the option that was taken last.
void OptionReader::note(std::string value, const OptionSays& says) {
  Row& row = rows_.back();
  row.value = row.given || says.left_out.empty() ? std::move(value) : std::string(says.left_out);
}

void OptionReader::fail(const DeviceString::Option& option, std::string_view expected) {
  if (error_) return;
  error_ = device_error(device_, option.value_offset,
                        "the value of " + option.key + " must be " + std::string(expected));
}

void OptionReader::text(std::string_view key, std::string& value, OptionSays says) {
  if (const auto* option = take(key, "a word", says)) value = option->value;
  note(value, says);
}

void OptionReader::size(std::string_view key, uint64_t& value, uint64_t least, uint64_t most,
                        OptionSays says) {
  const auto* option =
      take(key, "a size from " + size_text(least) + " to " + size_text(most), says);
  if (option != nullptr) {
    std::string_view unit;
    const auto number = parse<uint64_t>(option->value, unit);
    uint64_t factor = 0;
    if (unit.empty()) factor = 1;
    if (unit == "K") factor = 1 << 10;
    if (unit == "M") factor = 1 << 20;
    if (unit == "G") factor = 1 << 30;
    const bool fits = number && factor > 0 && *number <= most / factor && *number * factor >= least;
    if (fits) {
      value = *number * factor;
    } else {
      fail(*option, "a size from " + std::to_string(least) + " to " + std::to_string(most) +
                        " bytes, such as 4096, 4K or 1M");
    }
  }
  note(size_text(value), says);
}

// Reads an option by `parse`, which returns nothing if the text is not as expected.
template <class Value, class Parse>
void OptionReader::read(std::string_view key, std::string_view expected, Value& value,
                        const OptionSays& says, Parse&& parse) {
  const auto* option = take(key, std::string(expected), says);
  if (option == nullptr) return;
  if (const auto given = parse(option->value)) {
    value = *given;
  } else {
    fail(*option, expected);
  }
}

void OptionReader::fraction(std::string_view key, double& value, OptionSays says) {
  read(key, "a fraction, like 5% or 0.05", value, says, parse_fraction);
  note(fraction_text(value), says);
}

void OptionReader::duration(std::string_view key, Duration& value, OptionSays says) {
  read(key, "a time up to an hour with its unit, like 10us, 3ms or 1s", value, says,
       parse_duration);
  note(duration_text(value), says);
}

void OptionReader::number(std::string_view key, uint64_t& value, OptionSays says) {
  read(key, "a whole number", value, says, parse_number);
  note(std::to_string(value), says);
}

void OptionReader::bit_rate(std::string_view key, uint64_t& value, OptionSays says) {
  read(key, "bits per second with their unit, like 100Mbit or 2.5Gbit", value, says,
       parse_bit_rate);
  note(std::to_string(value / 1000) + "Kbit", says);
}

void OptionReader::address(std::string_view key, Eid& value, OptionSays says) {
  read(key, "an IPv4 or IPv6 address", value, says, parse_eid);
  note(to_string(value), says);
}

void OptionReader::flag(std::string_view key, bool& value, OptionSays says) {
  std::optional<bool> given = value;
  flag(key, given, says);
  value = *given;
}

void OptionReader::flag(std::string_view key, std::optional<bool>& value, OptionSays says) {
  read(key, "yes or no", value, says, parse_flag);
  note(value ? yes_or_no(*value) : "", says);
}

void OptionReader::refuse(std::string_view key, std::string_view expected) {
  for (const auto& option : device_.options) {
    if (option.key == key) fail(option, expected);
  }
}

void OptionReader::object(std::string_view key, std::string_view why) {
  for (const auto& option : device_.options) {
    if (option.key == key && !error_) error_ = device_error(device_, option.offset, why);
  }
}

Result<void> OptionReader::finish() {
  if (error_) return *error_;
  std::string known;
  for (const Row& row : rows_) known += (known.empty() ? "" : ", ") + row.key;
  for (size_t i = 0; i < device_.options.size(); ++i) {
    if (taken_[i]) continue;
    return device_error(device_, device_.options[i].offset,
                        device_.name + " has no such option; it has: " + known);
  }
  return {};
}

SettingList OptionReader::settings() const {
  SettingList out;
  for (const Row& row : rows_) {
    out.push_back({.name = device_.name + "." + row.key,
                   .value = row.value,
                   .origin = row.given ? Origin::device_string : Origin::by_default,
                   .source = {},
                   .meaning = row.meaning});
  }
  return out;
}

}  // namespace urma::drivers
