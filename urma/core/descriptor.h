#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/endpoint.h"
#include "urma/core/export.h"
#include "urma/core/work.h"

namespace urma {

// What a process must know to reach a segment, a Jetty, or both: one line of text, for a file, a
// message or a command line. It holds the tokens: whoever reads it has the access it grants.
//
//   urma1 at=127.0.0.1:4792 eid=127.0.0.1 life=9c0f3b...
//   segment=1f:8b2d90aa:7f1200000000:1048576:rw
//         jetty=417:90aa8b2d
//
// A segment whose atomics are not the processors' says whose they are: ...:rwa:engine. A device
// with several paths says where else it is: also=10.0.1.1:4792,10.0.2.1:4792
struct Descriptor {
  struct Segment {
    TokenId id{};
    TokenValue token{};
    uint64_t address = 0;
    uint64_t bytes = 0;
    Rights rights = Rights::local_only;
    AtomicDomain atomics = AtomicDomain::processor;
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  struct Jetty {
    JettyId id{};
    TokenValue token{};
    friend bool operator==(const Jetty&, const Jetty&) = default;
  };

  Endpoint at;
  Eid eid;
  Incarnation life{};
  std::optional<Segment> segment;
  std::optional<Jetty> jetty;
  std::vector<Endpoint> also{};  // its other paths, in order; up to 7, as far as the line is long
  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

inline constexpr size_t max_descriptor_bytes = 512;

URMA_API std::string to_string(const Descriptor& descriptor);
// Strict: what to_string writes, fields in any order, nothing unknown, nothing twice.
URMA_API Result<Descriptor> parse_descriptor(std::string_view line);

}  // namespace urma
