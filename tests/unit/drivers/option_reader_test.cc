// SPDX-License-Identifier: Apache-2.0
#include "drivers/device_string.h"
#include "drivers/driver.h"
#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::DeviceString;
using drivers::OptionReader;
using drivers::parse_device_string;

// Reads "udp:?it=VALUE" with `read(reader, value)`. Returns nothing if the value is refused.
template <class Value, class Read>
std::optional<Value> read_it(const std::string& text, Value value, Read&& read) {
  const auto device = parse_device_string("udp:?it=" + text);
  REQUIRE(device);
  const Value before = value;
  OptionReader reader(*device);
  read(reader, value);
  const auto done = reader.finish();
  if (done) return value;
  CHECK(value == before);
  INFO(done.error().message);
  CHECK(mentions(done.error().message, "at character 9 (\"" + text.substr(0, 24) + "\")"));
  CHECK(mentions(done.error().message, "the value of it must be"));
  return std::nullopt;
}

TEST_CASE("a size may have a unit, and lies between its bounds") {
  const auto size = [](const std::string& text) {
    return read_it(text, uint64_t{5}, [](OptionReader& reader, uint64_t& value) {
      reader.size("it", value, 10, 3ull << 30);
    });
  };
  CHECK(size("10") == 10);
  CHECK(size("4096") == 4096);
  CHECK(size("64K") == 65536);
  CHECK(size("2M") == 2 << 20);
  CHECK(size("3G") == 3ull << 30);
  CHECK(size("3221225472") == 3ull << 30);
  for (const char* bad :
       {"9", "0K", "4G", "3221225473", "3145729K", "-1", "x", "K", "1k", "1KB", "1.5K",
        "18446744073709551616", "18446744073709551615G", "17179869185G"}) {
    INFO(bad);
    CHECK_FALSE(size(bad));
  }
}

TEST_CASE("a fraction is a number from 0 to 1, or percents up to 100") {
  const auto fraction = [](const std::string& text) {
    return read_it(text, 0.25,
                   [](OptionReader& reader, double& value) { reader.fraction("it", value); });
  };
  CHECK(fraction("5%") == 0.05);
  CHECK(fraction("0.05") == 0.05);
  CHECK(fraction("0") == 0.0);
  CHECK(fraction("1") == 1.0);
  CHECK(fraction("100%") == 1.0);
  CHECK(fraction("1e-3") == 0.001);
  for (const char* bad : {"2", "101%", "-1%", "-0.1", "%", "5%%", "5 %", "nan", "inf", "x"}) {
    INFO(bad);
    CHECK_FALSE(fraction(bad));
  }
}

TEST_CASE("a duration has a unit and is at most an hour") {
  const auto duration = [](const std::string& text) {
    return read_it(text, Duration(5),
                   [](OptionReader& reader, Duration& value) { reader.duration("it", value); });
  };
  CHECK(duration("10ns") == 10ns);
  CHECK(duration("10us") == 10us);
  CHECK(duration("3ms") == 3ms);
  CHECK(duration("1s") == 1s);
  CHECK(duration("1.5ms") == 1500us);
  CHECK(duration("0s") == 0ns);
  CHECK(duration("3600s") == 1h);
  for (const char* bad : {"1", "1m", "1h", "3601s", "-1s", "s", "1 s", "nans", "infs", "1e300s"}) {
    INFO(bad);
    CHECK_FALSE(duration(bad));
  }
}

TEST_CASE("numbers, flags and addresses are read exactly, and other texts are refused") {
  const auto whole = [](const std::string& text) {
    return read_it(text, uint64_t{5},
                   [](OptionReader& reader, uint64_t& value) { reader.number("it", value); });
  };
  CHECK(whole("7") == 7);
  CHECK(whole("18446744073709551615") == UINT64_MAX);
  for (const char* bad : {"18446744073709551616", "-1", "7K", "x", "0x7"}) CHECK_FALSE(whole(bad));

  const auto flag = [](const std::string& text, bool before) {
    return read_it(text, before,
                   [](OptionReader& reader, bool& value) { reader.flag("it", value); });
  };
  CHECK(flag("yes", false) == true);
  CHECK(flag("no", true) == false);
  for (const char* bad : {"YES", "true", "1", "n"}) CHECK_FALSE(flag(bad, true));

  const auto any = [](const std::string& value) {
    return read_it(value, std::string("before"),
                   [](OptionReader& reader, std::string& out) { reader.text("it", out); });
  };
  CHECK(any("any-thing.1") == "any-thing.1");

  const auto address = [](const std::string& text) {
    return read_it(text, Eid{},
                   [](OptionReader& reader, Eid& value) { reader.address("it", value); });
  };
  CHECK(address("10.0.0.1") == ipv4(10, 0, 0, 1));
  CHECK(address("::1") == parse_address("::1").value());
  for (const char* bad : {"localhost", "10.0.0.1:1", "[::1]"}) CHECK_FALSE(address(bad));
}

TEST_CASE("an option that is not given leaves its default; one that is not read is named") {
  const auto device = parse_device_string("udp:x?mtu=4096&colour=red");
  REQUIRE(device);
  OptionReader reader(*device);
  uint64_t mtu = 1024, batch = 32;
  bool gso = true;
  reader.size("mtu", mtu, 1024, 8192);
  reader.size("batch", batch, 1, 64);
  reader.flag("gso", gso);
  CHECK(mtu == 4096);
  CHECK(batch == 32);
  CHECK(gso);
  const auto done = reader.finish();
  REQUIRE_FALSE(done);
  CHECK(mentions(done.error().message, "at character 16 (\"colour=red\"): udp has no such option"));
  CHECK(mentions(done.error().message, "it has: mtu, batch, gso"));
}

TEST_CASE("each option that was read reports its value, its origin, and the alternatives") {
  const auto device = parse_device_string("udp:x?mtu=4K&gso=no&late=5%");
  REQUIRE(device);
  OptionReader reader(*device);
  uint64_t mtu = 1024, batch = 0, seed = 7;
  bool gso = true, gro = true;
  std::optional<bool> kept;
  double late = 0;
  Duration delay = 1500us;
  Eid address;
  reader.size("mtu", mtu, 1024, 8192, {"largest payload"});
  reader.size("batch", batch, 1, 64, {"how many", "as many as fit"});
  reader.flag("gso", gso);
  reader.flag("gro", gro);
  reader.flag("kept", kept, {"kept", "as it was"});
  reader.fraction("late", late);
  reader.duration("delay", delay);
  reader.number("seed", seed);
  reader.address("address", address, {"its own", "the next one"});
  REQUIRE(reader.finish());

  const char* const values[] = {"4K", "as many as fit", "no", "yes",         "as it was",
                                "5%", "1500us",         "7",  "the next one"};
  const SettingList settings = reader.settings();
  REQUIRE(settings.size() == std::size(values));
  for (size_t i = 0; i < settings.size(); ++i) {
    INFO(settings[i].name);
    CHECK(settings[i].name == "udp." + reader.rows()[i].key);
    CHECK(settings[i].value == values[i]);
    const bool given = i == 0 || i == 2 || i == 5;
    CHECK(settings[i].origin == (given ? Origin::device_string : Origin::by_default));
    CHECK_FALSE(reader.rows()[i].expected.empty());
  }
  CHECK(settings[0].meaning == "largest payload");
  CHECK(reader.rows()[0].expected == "a size from 1K to 8K");
}

// The parser accepts the documented values: defaults are passed as values, and change nothing.
TEST_CASE("each driver documents the options that its device strings accept") {
  for (const DriverInfo& driver : drivers::describe_drivers()) {
    INFO(driver.name);
    CHECK_FALSE(driver.summary.empty());
    CHECK_FALSE(driver.forms.empty());
    for (const FormInfo& form : driver.forms) {
      INFO(form.text);
      CHECK(form.text.starts_with(driver.name));
      CHECK_FALSE(form.meaning.empty());
      const auto example = parse_device_string(form.example);
      REQUIRE(example);
      CHECK(example->name == driver.name);
      CHECK(static_cast<bool>(example->inner) == form.wraps);
      for (const OptionInfo& option : form.options) {
        INFO(option.key);
        CHECK_FALSE(option.values.empty());
        CHECK_FALSE(option.by_default.empty());
        CHECK_FALSE(option.meaning.empty());
      }
    }
  }
}

TEST_CASE("of several mistakes, the first one that is read is reported") {
  const auto device = parse_device_string("udp:x?a=one&b=two&c=3");
  REQUIRE(device);
  OptionReader reader(*device);
  uint64_t a = 0, b = 0;
  reader.number("b", b);
  reader.number("a", a);
  const auto done = reader.finish();
  REQUIRE_FALSE(done);
  CHECK(mentions(done.error().message, "the value of b"));
  CHECK_FALSE(mentions(done.error().message, "the value of a"));
}

TEST_CASE("options of a wrapper and of the wrapped device are separate") {
  const auto device = parse_device_string("fault(seed=1):udp:x?seed=2");
  REQUIRE(device);
  uint64_t outer = 0, inner = 0;
  OptionReader outer_reader(*device), inner_reader(*device->inner);
  outer_reader.number("seed", outer);
  inner_reader.number("seed", inner);
  CHECK(outer_reader.finish());
  CHECK(inner_reader.finish());
  CHECK(outer == 1);
  CHECK(inner == 2);
}

}  // namespace
}  // namespace urma::test
