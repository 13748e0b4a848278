// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/endpoint.h"
#include "urma/core/result.h"
#include "urma/core/setting.h"
#include "urma/core/time.h"

namespace urma::drivers {

// A parsed device string. All drivers use one grammar:
//
//   device  = wrapper ":" device | "paths():" device {"+" device}
//           | driver ":" [address] ["?" options("&")]
//   wrapper = name "(" [address [","]] [options(",")] ")"
//   option  = key "=" value
//
//   udp:   udp:127.0.0.1   udp:[::1]?mtu=4096   fault(loss=5%,seed=7):udp:127.0.0.1
//   link(10.0.0.9,cna=7):udp:10.0.0.1
//
// An address in parentheses begins with a digit, a bracket or a colon, a name with a letter.
struct DeviceString {
  struct Option {
    std::string key;
    std::string value;
    size_t offset = 0;        // the offset of the key in `text`, for messages
    size_t value_offset = 0;  // the offset of the value
  };

  std::string text;  // the whole device string
  std::string name;
  size_t offset = 0;    // the offset of the name in `text`
  std::string address;  // of a wrapper: the one in its parentheses
  size_t address_offset = 0;
  std::vector<Option> options;
  std::unique_ptr<DeviceString> inner;  // the wrapped device, of a wrapper
  std::vector<DeviceString> others;     // the further devices of paths()
};

Result<DeviceString> parse_device_string(std::string_view text);

// Returns an invalid_argument that quotes the text from offset `offset`. If `why` has no fix, the
// grammar is the fix.
Error device_error(const DeviceString& device, size_t offset, std::string_view why);

// The texts for people: what an option does, and what happens without it, if its default is not a
// value.
struct OptionSays {
  std::string_view meaning = {};
  std::string_view left_out = {};
};

// Reads the options of a DeviceString one by one, into variables that hold the defaults. `finish`
// reports the first invalid value, or an option that was not read, with the names of all options.
//
// The reader notes each option with its valid values, its value and its meaning, so the same calls
// document a driver, parse a device string, and report the source of each value.
class OptionReader {
 public:
  struct Row {
    std::string key;
    std::string expected;
    std::string value;   // the value in effect
    bool given = false;  // whether the device string has it
    std::string meaning;
  };

  explicit OptionReader(const DeviceString& device)
      : device_(device), taken_(device.options.size()) {}

  // Any text.
  void text(std::string_view key, std::string& value, OptionSays says = {});
  // 4096, 64K, 1M, 1G
  void size(std::string_view key, uint64_t& value, uint64_t least, uint64_t most,
            OptionSays says = {});
  // 5%, 0.05
  void fraction(std::string_view key, double& value, OptionSays says = {});
  // 10us, 3ms, 1s
  void duration(std::string_view key, Duration& value, OptionSays says = {});
  void number(std::string_view key, uint64_t& value, OptionSays says = {});
  // 100Mbit, 2.5Gbit: bits per second, in powers of ten
  void bit_rate(std::string_view key, uint64_t& value, OptionSays says = {});
  // yes, no
  void flag(std::string_view key, bool& value, OptionSays says = {});
  void flag(std::string_view key, std::optional<bool>& value, OptionSays says = {});
  // 127.0.0.1, ::1
  void address(std::string_view key, Eid& value, OptionSays says = {});
  // Refuses the value of an option that was read, for checks that only the driver can make.
  void refuse(std::string_view key, std::string_view expected);
  // Refuses an option that was read, whatever its value. `why` ends with ". Fix: " and what to do.
  void object(std::string_view key, std::string_view why);

  // Returns the first error: an invalid value, or an option that was not read.
  Result<void> finish();

  // Returns all options that were read, in order.
  const std::vector<Row>& rows() const { return rows_; }
  // Returns the same, as settings of this driver.
  SettingList settings() const;

 private:
  const DeviceString::Option* take(std::string_view key, std::string expected,
                                   const OptionSays& says);
  template <class Value, class Parse>
  void read(std::string_view key, std::string_view expected, Value& value, const OptionSays& says,
            Parse&& parse);
  void note(std::string value, const OptionSays& says);
  void fail(const DeviceString::Option& option, std::string_view expected);

  const DeviceString& device_;
  std::vector<bool> taken_;
  std::vector<Row> rows_;
  std::optional<Error> error_;
};

}  // namespace urma::drivers
