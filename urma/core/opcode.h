#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace urma {

// Transaction opcodes (UB 5.1); these numbers are the wire's, not the C API's.
enum class TaOpcode : uint8_t {
  send = 0x00,
  send_immediate = 0x01,
  write = 0x03,
  write_immediate = 0x04,
  read = 0x06,
  answer = 0x11,  // TAACK
  read_response = 0x12,
};

// What each opcode carries and how it may be treated. To add an opcode: a row here, and a function
// in the executor, whose table does not compile without it.
struct OpcodeInfo {
  TaOpcode opcode;
  std::string_view name;
  bool request;     // starts with BTAH; else with ATAH
  bool to_jetty;    // MTETAH: takes a receive slot
  bool to_memory;   // MAETAH: checked by the segment table
  bool offset;      // OFSTETAH: where the packet's bytes lie in its slice
  bool immediate;   // IMMETAH
  bool data;        // bytes may follow
  bool replayable;  // executing it twice is executing it once
};

// clang-format off
inline constexpr OpcodeInfo opcodes[] = {
    // opcode                    name              request jetty memory offset imm    data   replay
    {TaOpcode::send,            "send",            true,  true,  false, true,  false, true,  false},
    {TaOpcode::send_immediate,  "send_immediate",  true,  true,  false, true,  true,  true,  false},
    {TaOpcode::write,           "write",           true,  false, true,  false, false, true,  true},
    {TaOpcode::write_immediate, "write_immediate", true,  true,  true,  false, true,  true,  false},
    {TaOpcode::read,            "read",            true,  false, true,  false, false, false, true},
    {TaOpcode::answer,          "answer",          false, false, false, false, false, false, true},
    {TaOpcode::read_response,   "read_response",   false, false, false, true,  false, true,  true},
};
// clang-format on

namespace detail {
inline constexpr auto opcode_rows = [] {
  std::array<uint8_t, 256> rows{};
  uint8_t number = 0;
  for (const OpcodeInfo& row : opcodes) rows[static_cast<uint8_t>(row.opcode)] = ++number;
  return rows;
}();
}  // namespace detail

// Null for an opcode that we do not know.
constexpr const OpcodeInfo* find_opcode(uint8_t opcode) {
  const uint8_t row = detail::opcode_rows[opcode];
  return row == 0 ? nullptr : &opcodes[row - 1];
}

}  // namespace urma
