// SPDX-License-Identifier: Apache-2.0
#include "drivers/device_string.h"

#include "base/prng.h"
#include "drivers/driver.h"
#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using drivers::DeviceString;
using drivers::parse_device_string;

// Writes the parsed device string. The grammar allows one spelling only, so this must be the input.
std::string written(const DeviceString& device) {
  std::string options;
  for (const auto& option : device.options) {
    if (!options.empty()) options += device.inner ? "," : "&";
    options += option.key + "=" + option.value;
  }
  const bool both = device.inner && !device.address.empty() && !options.empty();
  if (device.inner) {
    return device.name + "(" + device.address + (both ? "," : "") + options +
           "):" + written(*device.inner);
  }
  return device.name + ":" + device.address + (options.empty() ? "" : "?" + options);
}

void check_places(const DeviceString& device) {
  CHECK(device.text.substr(device.offset, device.name.size()) == device.name);
  for (const auto& option : device.options) {
    CHECK(device.text.substr(option.offset, option.key.size() + 1) == option.key + "=");
    CHECK(device.text.substr(option.value_offset, option.value.size()) == option.value);
  }
  if (device.inner) {
    CHECK(device.inner->text == device.text);
    return check_places(*device.inner);
  }
  CHECK(device.text.substr(device.address_offset, device.address.size()) == device.address);
}

TEST_CASE("every string of the grammar is parsed, with the right positions") {
  for (const std::string text :
       {"udp:", "udp:127.0.0.1", "udp:[::1]:4792", "udp:[::1]?mtu=4096",
        "udp:127.0.0.1?mtu=4096&batch=32", "fault():udp:", "fault(loss=5%):udp:127.0.0.1",
        "fault(loss=5%,seed=7,delay=10us):udp:[::1]?mtu=4096&x.y-z_1=a:b",
        "link(10.0.0.9):udp:", "link([::1]:4794,cna=7):udp:[::1]:0",
        "a(b=c):d(e=f):g(h=i):udp:h?k=l", "udp:a,b(c", "udp:?a=b,c", "1-2_3.x:", "udp:x?a==b"}) {
    INFO(text);
    const auto device = parse_device_string(text);
    REQUIRE(device);
    CHECK(device->text == text);
    CHECK(written(*device) == text);
    check_places(*device);
  }
}

TEST_CASE("a device string is divided into name, address, options and wrapped device") {
  const auto device = parse_device_string("fault(loss=5%,seed=7):udp:[::1]:9?mtu=4096");
  REQUIRE(device);
  CHECK(device->name == "fault");
  CHECK(device->address.empty());
  REQUIRE(device->options.size() == 2);
  CHECK(device->options[0].key == "loss");
  CHECK(device->options[0].value == "5%");
  CHECK(device->options[1].key == "seed");
  CHECK(device->options[1].value == "7");
  REQUIRE(device->inner);
  CHECK(device->inner->name == "udp");
  CHECK(device->inner->address == "[::1]:9");
  REQUIRE(device->inner->options.size() == 1);
  CHECK(device->inner->options[0].value == "4096");
  CHECK_FALSE(device->inner->inner);
}

TEST_CASE("a string outside the grammar is refused with the position, the reason and a cure") {
  const struct {
    std::string text;
    size_t character;  // counted from 1
    std::string why;
  } cases[] = {
      {"", 1, "a driver's name is missing here"},
      {":127.0.0.1", 1, "a driver's name is missing here"},
      {" udp:", 1, "a driver's name is missing here"},
      {"UDP:", 1, "a driver's name is missing here"},
      {"udp", 4, "a colon is missing here"},
      {"udp 127.0.0.1", 4, "a colon is missing here"},
      {"udp:x?", 7, "an option's name is missing here"},
      {"udp:x?=1", 7, "an option's name is missing here"},
      {"udp:x?a=1&", 11, "an option's name is missing here"},
      {"udp:x?mtu", 10, "\"=\" and the option's value are missing here"},
      {"udp:x?mtu&a=1", 10, "\"=\" and the option's value are missing here"},
      {"udp:x?mtu=", 11, "the option's value is missing here"},
      {"udp:x?mtu=&a=1", 11, "the option's value is missing here"},
      {"udp:x?a=1&b=2&a=3", 15, "this option is given twice"},
      {"udp:x?a=1)", 10, "this is not understood"},
      {"fault(", 7, "an option's name is missing here"},
      {"fault(a=1", 10, "the parenthesis is not closed here"},
      {"fault(a=1,)", 11, "an option's name is missing here"},
      {"fault(a=1)", 11, "a colon and the device that is wrapped are missing here"},
      {"fault()udp:", 8, "a colon and the device that is wrapped are missing here"},
      {"fault():", 9, "a driver's name is missing here"},
      {"fault():fault():udp", 20, "a colon is missing here"},
      {"fault(a=1,a=2):udp:", 11, "this option is given twice"},
  };
  for (const auto& [text, character, why] : cases) {
    INFO(text);
    const auto device = parse_device_string(text);
    REQUIRE_FALSE(device);
    CHECK(device.status() == Status::invalid_argument);
    const std::string& message = device.error().message;
    INFO(message);
    CHECK(mentions(message, "\"" + text + "\""));
    CHECK(mentions(message, "at character " + std::to_string(character) + " (\"" +
                                text.substr(character - 1, 24) + "\"): " + why));
    CHECK(mentions(message, "Fix: write DRIVER:ADDRESS"));
  }
}

TEST_CASE("a wrapper may have an address in its parentheses, before its options") {
  const std::pair<std::string, std::string> cases[] = {
      {"link(10.0.0.9):udp:", "10.0.0.9"},
      {"link(10.0.0.9:5,cna=7):udp:", "10.0.0.9:5"},
      {"link([::1]:5,cna=7):udp:", "[::1]:5"},
      {"link(::1):fault(loss=1%):udp:", "::1"},
      {"link(cna=7):udp:", ""}};
  for (const auto& [text, address] : cases) {
    INFO(text);
    const auto device = parse_device_string(text);
    REQUIRE(device);
    CHECK(device->address == address);
    CHECK(text.substr(device->address_offset, address.size()) == address);
    CHECK(written(*device) == text);
  }
  for (const char* text : {"link(10.0.0.9", "link(10.0.0.9,", "link(10.0.0.9,):udp:",
                           "link(cna=7,10.0.0.9):udp:", "link(10.0.0.9 cna=7"}) {
    CHECK_FALSE(parse_device_string(text));
  }
}

TEST_CASE("an address in the parentheses of a wrapper that has none is refused") {
  for (const char* name : {"fault", "pcap", "paths"}) {
    const auto device = parse_device_string(std::string(name) + "(10.0.0.9):udp:");
    REQUIRE(device);
    const auto port = drivers::open_port(*device);
    REQUIRE_FALSE(port);
    CHECK(mentions(port.error().message, std::string(name) + " has no address of its own. Fix: "));
  }
}

TEST_CASE("a device string may have 512 characters") {
  const std::string longest = "udp:" + std::string(508, 'x');
  CHECK(parse_device_string(longest));
  CHECK_FALSE(parse_device_string(longest + "x"));
  // The deepest nesting that fits in the limit.
  std::string nested;
  for (int i = 0; i < 127; ++i) nested += "a():";
  CHECK(written(*parse_device_string(nested + "udp:")) == nested + "udp:");
}

TEST_CASE("no character of an accepted string is ignored") {
  constexpr std::string_view characters = "ab1=?&,():[]%.\"\0x";
  Prng prng(1);
  int accepted = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string text = "f(a=1):u:x?b=2&c=3";
    for (uint64_t edits = prng.between(1, 4); edits > 0; --edits) {
      const size_t at = prng.below(text.size());
      const char c = characters[prng.below(characters.size())];
      if (prng.chance(0.3)) {
        text.erase(at, 1);
      } else if (prng.chance(0.5)) {
        text.insert(at, 1, c);
      } else {
        text[at] = c;
      }
    }
    const auto device = parse_device_string(text);
    if (!device) continue;
    REQUIRE(written(*device) == text);
    ++accepted;
  }
  CHECK(accepted > 10'000);
}

}  // namespace
}  // namespace urma::test
