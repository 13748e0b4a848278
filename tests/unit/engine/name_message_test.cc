// SPDX-License-Identifier: Apache-2.0
#include "engine/name_message.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::NameMessage;
using engine::read_name_message;
using Kind = NameMessage::Kind;

std::string written(const NameMessage& message) {
  std::string line = "what was sent before";
  engine::write_name_message(message, line);
  CHECK(line.size() == engine::bytes_of(message));
  return line;
}

TEST_CASE("a name message is a line of three words, of which the last may have spaces") {
  CHECK(written({Kind::find, 1, "model.7"}) == "find 1 model.7");
  CHECK(written({Kind::found, 0, "urma 1 jetty 5"}) == "found 0 urma 1 jetty 5");
  CHECK(written({Kind::none, 4294967295}) == "none 4294967295");
  for (const NameMessage message : {NameMessage{Kind::find, 7, "x"},
                                    {Kind::found, 12, "a  b "},
                                    {Kind::none, 4294967295, ""},
                                    {Kind::found, 0, ""}}) {
    const std::string line = written(message);
    const auto read = read_name_message(line);
    REQUIRE(read.has_value());
    CHECK(read->kind == message.kind);
    CHECK(read->number == message.number);
    CHECK(read->rest == message.rest);
  }
}

TEST_CASE("other lines are not read as name messages") {
  for (const std::string_view line : {"", " ", "find", "find ", "find x", "find -1 x", "find +1 x",
                                      "find 1x x", "find  1 x", "find 4294967296 x", "find 0x1 x",
                                      "FIND 1 x", "finds 1 x", "fin 1 x", " find 1 x", "1 find"}) {
    INFO(line);
    CHECK_FALSE(read_name_message(line).has_value());
  }
}

TEST_CASE("what follows the number of a name message is not interpreted") {
  CHECK(read_name_message("find 1")->rest.empty());
  CHECK(read_name_message("find 1 ")->rest.empty());
  CHECK(read_name_message("find 1  x")->rest == " x");
  const std::string_view with_zero("find 1 a\0b", 10);
  CHECK(read_name_message(with_zero)->rest.size() == 3);
}

}  // namespace
}  // namespace urma::test
