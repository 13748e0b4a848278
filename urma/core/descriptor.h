// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/endpoint.h"
#include "urma/core/export.h"
#include "urma/core/work.h"

namespace urma {

// The address and the tokens that a process needs in order to reach a segment, a Jetty or both. A
// descriptor is written as one line of text, for a file, a message or a command line. The line
// contains the tokens, so every process that reads the line has the access that the tokens grant.
// Applications use Segment::descriptor and Device::import; this type is for tools.
//
//   urma1 at=127.0.0.1:4792 eid=127.0.0.1 life=9c0f3b...
//   segment=1f:8b2d90aa:7f1200000000:1048576:rw
//         jetty=417:90aa8b2d
//
// (`segment` is TokenID:token:address:bytes:rights, `jetty` is id:token; all but `bytes` in
// hexadecimal.) If the segment's AtomicDomain is not `processor`, its name follows the rights:
// ...:rwa:engine. If the device has several paths, a field lists their addresses:
// also=10.0.1.1:4792,10.0.2.1:4792
// If the device has several engines (engines=4), `at` and `eid` are those of the first one, and
// another field, behind `at`, lists what differs in the addresses of the others: the port, or the
// slot of a window: engines=:4793,:4794 or engines=/2,/3
struct Descriptor {
  // The field `segment=`.
  struct Segment {
    TokenId id{};                                    // of the segment
    TokenValue token{};                              // of the segment: a secret
    uint64_t address = 0;                            // of its first byte, in the owner
    uint64_t bytes = 0;                              // its length
    Rights rights = Rights::local_only;              // the accesses that peers may make
    AtomicDomain atomics = AtomicDomain::processor;  // where atomics on it are executed
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  // The field `jetty=`.
  struct Jetty {
    JettyId id{};        // of the Jetty, on its device; of a Jetty group, with `group_bit`
    TokenValue token{};  // of the Jetty: a secret
    friend bool operator==(const Jetty&, const Jetty&) = default;
  };

  Endpoint at;                     // the address of the first path
  Eid eid;                         // of the device
  Incarnation life{};              // of the device
  std::optional<Segment> segment;  // if the descriptor names one
  std::optional<Jetty> jetty;      // if the descriptor names one
  std::vector<Endpoint> also{};    // the addresses of the other paths, in order: up to 7
  // The addresses of the device's other engines, in order: up to 7. The segment is reached at any
  // of them; with N engines in all, the Jetty at the one whose number is the Jetty's id modulo N.
  std::vector<Endpoint> engines{};
  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

inline constexpr size_t max_descriptor_bytes = 512;  // the longest line
inline constexpr uint32_t most_engines = 8;          // of a device

// Writes the line. Addresses of `also` that do not fit into max_descriptor_bytes are left out.
// Throws std::bad_alloc.
URMA_API std::string to_string(const Descriptor& descriptor);
// Parses what to_string writes. Fields may be in any order; an unknown or repeated field is an
// error. Newlines at the end are ignored. Errors: invalid_argument, quoting the field.
URMA_API Result<Descriptor> parse_descriptor(std::string_view line);

}  // namespace urma
