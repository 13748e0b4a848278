// SPDX-License-Identifier: Apache-2.0
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
  compare_swap = 0x07,
  swap = 0x08,
  atomic_store = 0x09,
  atomic_load = 0x0a,
  fetch_add = 0x0b,
  fetch_sub = 0x0c,
  fetch_and = 0x0d,
  fetch_or = 0x0e,
  fetch_xor = 0x0f,
  answer = 0x11,  // TAACK
  read_response = 0x12,
  atomic_response = 0x13,
};

// The headers that each opcode has, and how its requests may be handled. To add an opcode, add a
// row here and its cases in the executor, which does not compile without them.
struct OpcodeInfo {
  TaOpcode opcode;
  std::string_view name;
  bool request;            // begins with a BTAH; a response with an ATAH
  bool to_jetty;           // MTETAH: takes a receive slot
  bool to_memory;          // MAETAH: checked by the segment table
  bool offset;             // OFSTETAH: where the packet's bytes lie in its slice
  bool notify;             // NTFETAH: 8 bytes of memory that are set once all data is in place
  bool immediate;          // IMMETAH
  bool data;               // bytes may follow
  bool replayable;         // executing it twice has the same effect as once
  bool user_data = false;  // UDETAH: how an atomic updates
  uint8_t operands = 0;    // how many operands an atomic has; each is as long as its word
};

namespace detail {
inline constexpr bool yes = true;
inline constexpr bool no = false;
// clang-format off
inline constexpr OpcodeInfo opcodes[] = {
    // opcode                    name               req. jet. mem. off. ntf. imm. data rep. ud   ops
    {TaOpcode::send,             "send",            yes, yes, no,  yes, no,  no,  yes, no},
    {TaOpcode::send_immediate,   "send_immediate",  yes, yes, no,  yes, no,  yes, yes, no},
    {TaOpcode::write,            "write",           yes, no,  yes, no,  no,  no,  yes, yes},
    {TaOpcode::write_immediate,  "write_immediate", yes, yes, yes, no,  no,  yes, yes, no},
    {TaOpcode::write_notify,     "write_notify",    yes, no,  yes, no,  yes, no,  yes, no},
    {TaOpcode::read,             "read",            yes, no,  yes, no,  no,  no,  no,  yes},
    {TaOpcode::compare_swap,     "compare_swap",    yes, no,  yes, no,  no,  no,  yes, no,  no,  2},
    {TaOpcode::swap,             "swap",            yes, no,  yes, no,  no,  no,  yes, no,  no,  1},
    {TaOpcode::atomic_store,     "atomic_store",    yes, no,  yes, no,  no,  no,  yes, no,  yes, 1},
    {TaOpcode::atomic_load,      "atomic_load",     yes, no,  yes, no,  no,  no,  yes, no,  yes, 1},
    {TaOpcode::fetch_add,        "fetch_add",       yes, no,  yes, no,  no,  no,  yes, no,  no,  1},
    {TaOpcode::fetch_sub,        "fetch_sub",       yes, no,  yes, no,  no,  no,  yes, no,  no,  1},
    {TaOpcode::fetch_and,        "fetch_and",       yes, no,  yes, no,  no,  no,  yes, no,  no,  1},
    {TaOpcode::fetch_or,         "fetch_or",        yes, no,  yes, no,  no,  no,  yes, no,  no,  1},
    {TaOpcode::fetch_xor,        "fetch_xor",       yes, no,  yes, no,  no,  no,  yes, no,  no,  1},
    {TaOpcode::answer,           "answer",          no,  no,  no,  no,  no,  no,  no,  yes},
    {TaOpcode::read_response,    "read_response",   no,  no,  no,  yes, no,  no,  yes, yes},
    {TaOpcode::atomic_response,  "atomic_response", no,  no,  no,  no,  no,  no,  yes, yes},
};
// clang-format on

inline constexpr auto opcode_rows = [] {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const OpcodeInfo& row : opcodes) rows[static_cast<uint8_t>(row.opcode)] = &row;
  return rows;
}();
}  // namespace detail

using detail::opcodes;

// Returns null for an unknown opcode.
constexpr const OpcodeInfo* find_opcode(uint8_t opcode) { return detail::opcode_rows[opcode]; }
constexpr const OpcodeInfo& info_of(TaOpcode opcode) {
  return *find_opcode(static_cast<uint8_t>(opcode));
}

}  // namespace urma
