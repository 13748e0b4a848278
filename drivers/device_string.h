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

// How a device is named: one grammar for all drivers.
//
//   device  = wrapper ":" device | "paths():" device {"+" device}
//           | driver ":" [address] ["?" options("&")]
//   wrapper = name "(" [options(",")] ")"
//   option  = key "=" value
//
//   udp:   udp:127.0.0.1   udp:[::1]?mtu=4096   fault(loss=5%,seed=7):udp:127.0.0.1
struct DeviceString {
  struct Option {
    std::string key;
    std::string value;
    size_t place = 0;  // of the key in `text`, for messages
    size_t value_place = 0;
  };

  std::string text;  // the whole, as given
  std::string name;
  size_t place = 0;  // of the name in `text`
  std::string address;
  size_t address_place = 0;
  std::vector<Option> options;
  std::unique_ptr<DeviceString> inner;  // what a wrapper wraps
  std::vector<DeviceString> others;     // what paths() joins with it
};

Result<DeviceString> parse_device_string(std::string_view text);

// An error that quotes the text from the place on. Where `why` has no fix of its own, the grammar
// is the fix.
Error device_error(const DeviceString& device, size_t place, std::string_view why);

// For people: what an option does, and what is so without it, if that is no plain value.
struct OptionSays {
  std::string_view meaning = {};
  std::string_view left_out = {};
};

// Takes options out of a DeviceString one by one; what is left at the end is an error that names
// the options there are. The first thing that does not fit is remembered, the rest ignored.
//
// What is read is noted, with what it may be and what it is: the same calls document a driver, read
// a device string and say afterwards which value came from where.
class OptionReader {
 public:
  struct Row {
    std::string key;
    std::string expected;
    std::string value;  // after it was read
    bool given = false;
    std::string meaning;
  };

  explicit OptionReader(const DeviceString& device)
      : device_(device), taken_(device.options.size()) {}

  // Anything.
  void text(std::string_view key, std::string& value, OptionSays says = {});
  // 4096, 64K, 1M, 1G
  void size(std::string_view key, uint64_t& value, uint64_t least, uint64_t most,
            OptionSays says = {});
  // 5%, 0.05
  void fraction(std::string_view key, double& value, OptionSays says = {});
  // 10us, 3ms, 1s
  void duration(std::string_view key, Duration& value, OptionSays says = {});
  void number(std::string_view key, uint64_t& value, OptionSays says = {});
  // 100Mbit, 2.5Gbit: per second, in powers of ten
  void bit_rate(std::string_view key, uint64_t& value, OptionSays says = {});
  // yes, no
  void flag(std::string_view key, bool& value, OptionSays says = {});
  void flag(std::string_view key, std::optional<bool>& value, OptionSays says = {});
  // 127.0.0.1, ::1
  void address(std::string_view key, Eid& value, OptionSays says = {});
  // For what only the driver knows about a value that was taken: it is not among those expected.
  void refuse(std::string_view key, std::string_view expected);

  // An error if anything did not fit, or was not asked for.
  Result<void> finish();

  // All options that were asked for, in order.
  const std::vector<Row>& rows() const { return rows_; }
  // The same as settings of this driver.
  SettingList settings() const;

 private:
  const DeviceString::Option* take(std::string_view key, std::string expected,
                                   const OptionSays& says);
  void note(std::string value, const OptionSays& says);
  void fail(const DeviceString::Option& option, std::string_view expected);

  const DeviceString& device_;
  std::vector<bool> taken_;
  std::vector<Row> rows_;
  std::optional<Error> error_;
};

}  // namespace urma::drivers
