// SPDX-License-Identifier: Apache-2.0
#include "engine/configuration.h"

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::parse_configuration;
using engine::unknown_variables;

TEST_CASE("a configuration file has names, values, comments and empty lines") {
  CHECK(parse_configuration("", "f")->empty());
  CHECK(parse_configuration("# device = x\n\n  \t\r\n#", "f")->empty());
  const auto lines =
      parse_configuration("\n  device=udp:10.0.0.5?mtu=4096 \r\n\tlog =  info", "f").value();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].name == "device");
  CHECK(lines[0].value == "udp:10.0.0.5?mtu=4096");
  CHECK(lines[0].line == 2);
  CHECK(lines[1].name == "log");
  CHECK(lines[1].value == "info");
  CHECK(lines[1].line == 3);
}

TEST_CASE("a wrong line of a configuration file is refused with its number and a cure") {
  const std::pair<std::string, const char*> cases[] = {
      {"device", "is not NAME = VALUE"},
      {"device =", "is not NAME = VALUE"},
      {" = udp:", "is not NAME = VALUE"},
      {"devise = udp:", "perhaps device is meant"},
      {"Device = udp:", "perhaps device is meant"},
      {"colour = red", "\"colour\" is not a setting"},
      {"[urma]", "is not NAME = VALUE"},
      {"device = \"udp:\"", "in quotes"},
      {"device = 'udp:'", "in quotes"},
      {"device = udp: # slow", "comment is behind the value"},
      {std::string("log = in\0fo", 11), "control character"},
      {"log = \x1b[2J", "control character"},
      {"\xff\xfe = x", "is not a setting"},
      {"device = " + std::string(2000, 'x'), "more than 1024 bytes"},
      {"log = off\nlog = off", "set in line 3 already"},
  };
  for (const auto& [text, why] : cases) {
    INFO(text);
    const Error error = parse_configuration("\n# fine\n" + text + "\n", "/f").error();
    CHECK(error.status == Status::invalid_argument);
    CHECK(mentions(error.message, text.find('\n') == text.npos ? "/f:3: " : "/f:4: "));
    CHECK(mentions(error.message, why));
    CHECK(mentions(error.message, "Fix: "));
    for (const char c : error.message) CHECK((c >= ' ' && c <= '~'));
  }
}

TEST_CASE("unknown variables are said once each, with what may be meant") {
  const char* const none[] = {nullptr};
  CHECK(unknown_variables(none).empty());
  CHECK(unknown_variables(nullptr).empty());
  const char* const some[] = {"URMA_DEVICE=udp:", "URMA_DEVICES=udp:",     "URMA_TEST_X=1",
                              "HOME=/",           "URMA_COLOUR=red",       "URMA_CONFIG=x",
                              "URMA_LOG",         "URMA_NCCL_DEVICE=udp:", nullptr};
  const auto said = unknown_variables(some);
  REQUIRE(said.size() == 2);
  CHECK(mentions(said[0],
                 "URMA_DEVICES has an effect only in programs of the C API of UMDK; perhaps "
                 "URMA_DEVICE is meant"));
  CHECK(mentions(said[1], "URMA_COLOUR has no effect"));
}

}  // namespace
}  // namespace urma::test
