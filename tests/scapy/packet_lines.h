// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tests/golden/field_text.h"

namespace urma::test {

// Packets as lines of text: the layers of a packet with their fields, and its bytes from the
// transport header to the ICRC.
//
//   packet kind=write source=... destination=... | rtph last=0x1 ... | ... | wire hex=...

// Prints packets of every kind with random fields, made by the library.
void make_packets(uint64_t seed, uint64_t rounds);

// Reads "packet reports=... source=... | wire hex=..." lines, and prints what the library reads
// from each, or "refused". `reports` is the form of the CETPH (ReportForm), which no packet names.
void parse_packets();

struct Route {
  Endpoint from;
  Endpoint to;
};

template <class Visit>
void visit_fields(Route& route, Visit&& visit) {
  visit("source", route.from.address);
  visit("source_port", route.from.port);
  visit("destination", route.to.address);
  visit("destination_port", route.to.port);
}

inline std::string layers_of(const TaRequest& request, const OpcodeInfo& info) {
  std::string text = " | btah" + fields_text(request.base);
  if (info.user_data) text += " | udetah" + fields_text(request.update);
  if (info.to_jetty) text += " | mtetah" + fields_text(request.target);
  if (info.to_memory) text += " | maetah" + fields_text(request.memory);
  if (info.offset) text += " | ofstetah" + fields_text(request.offset);
  if (info.notify) text += " | ntfetah" + fields_text(request.notify);
  if (info.immediate) text += " | immetah" + fields_text(request.immediate);
  if (request.base.token_present) text += " | tvetah" + fields_text(request.token);
  return text;
}

inline std::string layers_of(const TaResponse& response, const OpcodeInfo& info) {
  return " | atah" + fields_text(response.base) +
         (info.offset ? " | ofstetah" + fields_text(response.offset) : "");
}

inline std::string data_layer(std::span<const std::byte> data) {
  return data.empty() ? "" : " | data hex=" + to_hex(data);
}

}  // namespace urma::test
