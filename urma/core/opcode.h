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
  write_notify = 0x05,
  read = 0x06,
  answer = 0x11,  // TAACK
  read_response = 0x12,
};

// What each opcode carries and how it may be treated. To add an opcode: a row here, and its cases
// in the executor, which does not compile without them.
struct OpcodeInfo {
  TaOpcode opcode;
  std::string_view name;
  bool request;     // starts with BTAH; else with ATAH
  bool to_jetty;    // MTETAH: takes a receive slot
  bool to_memory;   // MAETAH: checked by the segment table
  bool offset;      // OFSTETAH: where the packet's bytes lie in its slice
  bool notify;      // NTFETAH: 8 bytes of memory that are set when all data is in place
  bool immediate;   // IMMETAH
  bool data;        // bytes may follow
  bool replayable;  // executing it twice is executing it once
};

namespace detail {
inline constexpr bool yes = true;
inline constexpr bool no = false;
// clang-format off
inline constexpr OpcodeInfo opcodes[] = {
    // opcode                   name               request jetty memory offset ntf  imm  data replay
    {TaOpcode::send,            "send",            yes,    yes,  no,    yes,   no,  no,  yes, no},
    {TaOpcode::send_immediate,  "send_immediate",  yes,    yes,  no,    yes,   no,  yes, yes, no},
    {TaOpcode::write,           "write",           yes,    no,   yes,   no,    no,  no,  yes, yes},
    {TaOpcode::write_immediate, "write_immediate", yes,    yes,  yes,   no,    no,  yes, yes, no},
    {TaOpcode::write_notify,    "write_notify",    yes,    no,   yes,   no,    yes, no,  yes, no},
    {TaOpcode::read,            "read",            yes,    no,   yes,   no,    no,  no,  no,  yes},
    {TaOpcode::answer,          "answer",          no,     no,   no,    no,    no,  no,  no,  yes},
    {TaOpcode::read_response,   "read_response",   no,     no,   no,    yes,   no,  no,  yes, yes},
};
// clang-format on

inline constexpr auto opcode_rows = [] {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const OpcodeInfo& row : opcodes) rows[static_cast<uint8_t>(row.opcode)] = &row;
  return rows;
}();
}  // namespace detail

using detail::opcodes;

// Null for an opcode that we do not know.
constexpr const OpcodeInfo* find_opcode(uint8_t opcode) { return detail::opcode_rows[opcode]; }
constexpr const OpcodeInfo& info_of(TaOpcode opcode) {
  return *find_opcode(static_cast<uint8_t>(opcode));
}

}  // namespace urma
