// SPDX-License-Identifier: Apache-2.0
#include "urma/core/descriptor.h"

#include <charconv>
#include <cinttypes>
#include <cstring>
#include <span>
#include <vector>

#include "urma/core/path.h"

namespace urma {
namespace {

constexpr std::string_view magic = "urma1";

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%" PRIx64, value);
  return text;
}

std::string rights_text(Rights rights) {
  std::string text;
  if (has(rights, Rights::read)) text += 'r';
  if (has(rights, Rights::write)) text += 'w';
  if (has(rights, Rights::atomic)) text += 'a';
  return text.empty() ? "-" : text;
}

std::optional<Rights> parse_rights(std::string_view text) {
  Rights rights = Rights::local_only;
  if (text == "-") return rights;
  for (const char c : text) {
    const Rights one = c == 'r'   ? Rights::read
                       : c == 'w' ? Rights::write
                       : c == 'a' ? Rights::atomic
                                  : Rights::local_only;
    if (one == Rights::local_only || has(rights, one)) return std::nullopt;
    rights = rights | one;
  }
  return text.empty() ? std::nullopt : std::optional(rights);
}

constexpr std::string_view domain_names[] = {"processor", "engine", "device"};

// `said`: the field after the rights, or nothing, which means the processor.
std::optional<AtomicDomain> parse_domain(std::span<const std::string_view> said) {
  if (said.empty()) return AtomicDomain::processor;
  for (size_t i = 1; i < std::size(domain_names); ++i) {
    if (said[0] == domain_names[i]) return static_cast<AtomicDomain>(i);
  }
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == text.npos) return parts;
    at = end + 1;
  }
}

std::optional<uint64_t> parse_number(std::string_view text, int base, uint64_t limit) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{} || end != text.data() + text.size() || value > limit) return {};
  return value;
}

std::optional<Descriptor::Segment> parse_segment(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 5 && parts.size() != 6) return std::nullopt;
  const auto id = parse_number(parts[0], 16, id_limit - 1);
  const auto token = parse_number(parts[1], 16, UINT32_MAX);
  const auto address = parse_number(parts[2], 16, UINT64_MAX);
  const auto bytes = parse_number(parts[3], 10, UINT64_MAX);
  const auto rights = parse_rights(parts[4]);
  const auto atomics = parse_domain(std::span(parts).subspan(5));
  if (!id || !token || !address || !bytes || !rights || !atomics) return std::nullopt;
  if (*bytes > UINT64_MAX - *address) return std::nullopt;
  return Descriptor::Segment{TokenId(*id), TokenValue(*token), *address, *bytes, *rights, *atomics};
}

std::optional<Descriptor::Jetty> parse_jetty(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto id = parse_number(parts[0], 16, group_bit | (id_limit - 1));
  const auto token = parse_number(parts[1], 16, UINT32_MAX);
  const bool valid = id && number(without_group_bit(JettyId(*id))) < id_limit;
  if (!valid || !token) return std::nullopt;
  return Descriptor::Jetty{JettyId(*id), TokenValue(*token)};
}

std::vector<Endpoint> parse_places(std::string_view text) {
  std::vector<Endpoint> out;
  for (const std::string_view part : split(text, ',')) {
    const auto endpoint = parse_endpoint(part);
    if (!endpoint || out.size() + 1 == most_paths) return {};
    out.push_back(*endpoint);
  }
  return out;
}

void add_places(std::string& line, std::string_view before, const std::vector<Endpoint>& places) {
  for (const Endpoint& place : places) {
    const std::string text = to_string(place);
    if (line.size() + before.size() + text.size() > max_descriptor_bytes) return;
    line += before;
    line += text;
    before = ",";
  }
}

// An engine's address differs from that of the first one by the port, which is written as :4793, or
// in a window by the slot, the last two bytes, which are written as /2a. All of them fit the line.
constexpr size_t slot_at = 14;
bool is_other_slot(const Endpoint& place, const Endpoint& first) {
  return place.port == first.port && std::memcmp(&place.address, &first.address, slot_at) == 0;
}
std::string engine_text(const Endpoint& place, const Endpoint& first) {
  if (place.address == first.address) return std::string(":").append(std::to_string(place.port));
  if (!is_other_slot(place, first)) return to_string(place);
  return std::string("/").append(hex(static_cast<uint64_t>(place.address.bytes[slot_at]) << 8 |
                                     static_cast<uint64_t>(place.address.bytes[slot_at + 1])));
}
std::optional<Endpoint> parse_engine(std::string_view text, const Endpoint& first) {
  const bool slot = text.starts_with('/');
  if (!slot && !text.starts_with(':')) {
    const auto place = parse_endpoint(text);
    return place ? std::optional(*place) : std::nullopt;
  }
  const auto value = parse_number(text.substr(1), slot ? 16 : 10, UINT16_MAX);
  if (!value || *value == 0) return std::nullopt;
  Endpoint place = first;
  if (slot) {
    place.address.bytes[slot_at] = static_cast<std::byte>(*value >> 8);
    place.address.bytes[slot_at + 1] = static_cast<std::byte>(*value);
  } else {
    place.port = static_cast<uint16_t>(*value);
  }
  return place;
}

// Returns nothing if the text is malformed.
std::vector<Endpoint> parse_engines(std::string_view text, const Endpoint& first) {
  std::vector<Endpoint> out;
  for (const std::string_view part : split(text, ',')) {
    const auto place = parse_engine(part, first);
    if (!place || out.size() + 1 == most_engines) return {};
    out.push_back(*place);
  }
  return out;
}

Error bad_descriptor(std::string_view field, std::string_view why) {
  return {Status::invalid_argument, "invalid descriptor: \"" + std::string(field.substr(0, 80)) +
                                        "\" " + std::string(why) +
                                        ". Fix: copy the whole line that the owner printed"};
}

// Sets the field that `key` names. Returns false if the key is unknown or repeated, or the value is
// malformed.
bool set_field(Descriptor& out, std::string_view key, std::string_view value, unsigned& seen) {
  constexpr std::string_view keys[] = {"at", "eid", "life", "segment", "jetty", "also", "engines"};
  unsigned which = 0;
  while (which < std::size(keys) && keys[which] != key) ++which;
  if (which == std::size(keys) || (seen >> which & 1) != 0) return false;
  seen |= 1u << which;
  switch (which) {
    case 0: {
      const auto endpoint = parse_endpoint(value);
      return endpoint.ok() && (out.at = *endpoint, true);
    }
    case 1: {
      const auto eid = parse_address(value);
      return eid.ok() && (out.eid = *eid, true);
    }
    case 2: {
      const auto life = parse_number(value, 16, UINT64_MAX);
      return life && (out.life = Incarnation(*life), true);
    }
    case 3:
      return (out.segment = parse_segment(value)).has_value();
    case 4:
      return (out.jetty = parse_jetty(value)).has_value();
    case 5:
      return !(out.also = parse_places(value)).empty();
    default:
      return (seen & 1) != 0 && !(out.engines = parse_engines(value, out.at)).empty();
  }
}

}  // namespace

std::string to_string(const Descriptor& descriptor) {
  std::string line(magic);
  line += " at=" + to_string(descriptor.at) + " eid=" + to_string(descriptor.eid) +
          " life=" + hex(number(descriptor.life));
  if (const auto& segment = descriptor.segment) {
    line += " segment=" + hex(number(segment->id)) + ":" + hex(number(segment->token)) + ":" +
            hex(segment->address) + ":" + std::to_string(segment->bytes) + ":" +
            rights_text(segment->rights);
    if (segment->atomics != AtomicDomain::processor) {
      line += ':';
      // A word that cannot be parsed, for a value that the enumeration does not have.
      const bool valid = is_valid(segment->atomics);
      line += valid ? domain_names[static_cast<size_t>(segment->atomics)] : "invalid";
    }
  }
  if (const auto& jetty = descriptor.jetty) {
    line += " jetty=" + hex(number(jetty->id)) + ":" + hex(number(jetty->token));
  }
  add_places(line, " also=", descriptor.also);
  std::string_view before = " engines=";
  for (const Endpoint& place : descriptor.engines) {
    line += before;
    line += engine_text(place, descriptor.at);
    before = ",";
  }
  return line;
}

Result<Descriptor> parse_descriptor(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.size() > max_descriptor_bytes) return bad_descriptor(line, "is too long");
  const auto words = split(line, ' ');
  if (words.front() != magic) {
    return bad_descriptor(words.front(), "is not \"urma1\", the first word of each descriptor");
  }
  Descriptor out;
  unsigned seen = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string_view::npos ||
        !set_field(out, words[i].substr(0, equals), words[i].substr(equals + 1), seen)) {
      return bad_descriptor(words[i], "is unknown, repeated or malformed");
    }
  }
  constexpr unsigned needed = 7;  // at, eid, life
  if ((seen & needed) != needed) return bad_descriptor(line, "lacks at=, eid= or life=");
  return out;
}

}  // namespace urma
