// SPDX-License-Identifier: Apache-2.0
#include "engine/log_choice.h"

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::LogChoice;

LogChoice parse(std::string_view text) {
  std::vector<std::string> wrong;
  const LogChoice choice = LogChoice::parse(text, wrong);
  CHECK(wrong.empty());
  return choice;
}

TEST_CASE("a level holds for all layers, except for those that have one of their own") {
  CHECK_FALSE(parse("off").level());
  CHECK_FALSE(parse("").has("engine", LogLevel::error));
  const LogChoice choice = parse(" jetty = debug ,warning,drivers=off, tp=info");
  CHECK(choice.level() == LogLevel::debug);
  CHECK(choice.has("jetty", LogLevel::debug));
  CHECK(choice.has("transport", LogLevel::info));
  CHECK_FALSE(choice.has("transport", LogLevel::debug));
  CHECK_FALSE(choice.has("drivers", LogLevel::error));
  for (const char* const layer : {"engine", "memseg", "congestion"}) {
    CHECK(choice.has(layer, LogLevel::warning));
    CHECK_FALSE(choice.has(layer, LogLevel::info));
  }
  CHECK(choice.text() == "warning,drivers=off,transport=info,jetty=debug");
  CHECK(parse(choice.text()).text() == choice.text());
  CHECK(parse("engine=error").level() == LogLevel::error);
}

TEST_CASE("what is wrong with a level has no effect and is said, and the rest is used") {
  std::vector<std::string> wrong;
  const LogChoice choice =
      LogChoice::parse("loud,info,tq=debug,jetty=,transport=inof,=error,\x1b[2J,,", wrong);
  CHECK(choice.text() == "info");
  REQUIRE(wrong.size() == 6);
  CHECK(mentions(wrong[0], "\"loud\" is not a level of the log"));
  CHECK(mentions(wrong[1], "\"tq\" is not a layer of the log"));
  CHECK(mentions(wrong[2], "\"\" is not a level of the log"));
  CHECK(mentions(wrong[3], "(perhaps info is meant)"));
  CHECK(mentions(wrong[4], "\"\" is not a layer of the log"));
  CHECK(mentions(wrong[5], "\"?[2J\" is not a level of the log"));
}

}  // namespace
}  // namespace urma::test
