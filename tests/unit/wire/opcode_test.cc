// SPDX-License-Identifier: Apache-2.0
#include "wire/opcode.h"

#include <set>

#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("rows are found by the opcodes of the specification, and by no other number") {
  // UB 5.1.
  constexpr struct {
    uint8_t number;
    std::string_view name;
  } numbers[] = {{0x00, "send"},         {0x01, "send_immediate"},
                 {0x03, "write"},        {0x04, "write_immediate"},
                 {0x05, "write_notify"}, {0x06, "read"},
                 {0x11, "answer"},       {0x12, "read_response"},
                 {0x07, "compare_swap"}, {0x08, "swap"},
                 {0x09, "atomic_store"}, {0x0a, "atomic_load"},
                 {0x0b, "fetch_add"},    {0x0c, "fetch_sub"},
                 {0x0d, "fetch_and"},    {0x0e, "fetch_or"},
                 {0x0f, "fetch_xor"},    {0x13, "atomic_response"}};
  std::set<unsigned> known;
  for (const auto& [number, name] : numbers) {
    REQUIRE(find_opcode(number) != nullptr);
    CHECK(find_opcode(number)->name == name);
    CHECK(static_cast<uint8_t>(find_opcode(number)->opcode) == number);
    known.insert(number);
  }
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    CHECK((find_opcode(static_cast<uint8_t>(opcode)) != nullptr) == known.contains(opcode));
  }
}

TEST_CASE("the table does not contradict itself") {
  for (const OpcodeInfo& info : opcodes) {
    INFO(info.name);
    // A request has a target; a response returns to the queue of its TASSN.
    CHECK((info.to_jetty || info.to_memory) == info.request);
    // An opcode that takes a receive slot must not take two (UB 5.4: sends and immediates run
    // once).
    if (info.to_jetty) CHECK_FALSE(info.replayable);
    if (info.immediate) CHECK(info.to_jetty);
    // An opcode that notifies the application must not run twice.
    if (info.notify) CHECK_FALSE(info.replayable);
    if (info.notify) CHECK((info.to_memory && !info.immediate));
    // Data is placed by an address, or by an offset in its message.
    CHECK_FALSE((info.to_memory && info.offset));
    const bool result = info.opcode == TaOpcode::atomic_response;
    if (info.data) CHECK((info.to_memory || info.offset || result));
    // An atomic is executed once, and is one packet (UB 5.4).
    if (info.operands > 0) CHECK((info.to_memory && info.data && !info.replayable));
    if (info.user_data) CHECK(info.operands == 1);
  }
}

}  // namespace
}  // namespace urma::test
