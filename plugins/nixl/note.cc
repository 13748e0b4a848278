// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/note.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace urma::nixl {
namespace {

constexpr std::array<char, 4> magic = {'U', 'N', 'X', '1'};

template <class Number>
void put(std::vector<std::byte>& out, size_t at, Number value) {
  for (size_t i = 0; i < sizeof value; ++i) out[at + i] = static_cast<std::byte>(value >> (8 * i));
}

template <class Number>
Number get(std::span<const std::byte> from, size_t at) {
  Number value = 0;
  for (size_t i = sizeof value; i-- > 0;) {
    value = static_cast<Number>(value << 8 | static_cast<Number>(from[at + i]));
  }
  return value;
}

// Returns how much text a message has behind a name of this length.
constexpr size_t room_behind(size_t name_bytes) {
  return most_message_bytes - note_header_bytes - name_bytes;
}

struct Part {
  uint64_t number;
  size_t total;
  size_t offset;
  std::string_view name;
  std::string_view text;
};

std::optional<Part> parse(std::span<const std::byte> message) {
  if (message.size() < note_header_bytes) return std::nullopt;
  if (std::memcmp(message.data(), magic.data(), magic.size()) != 0) return std::nullopt;
  const size_t name_bytes = get<uint16_t>(message, 4);
  if (name_bytes > most_name_bytes || message.size() - note_header_bytes < name_bytes) {
    return std::nullopt;
  }
  const auto* const text = reinterpret_cast<const char*>(message.data()) + note_header_bytes;
  const Part part{
      .number = get<uint64_t>(message, 8),
      .total = get<uint32_t>(message, 16),
      .offset = get<uint32_t>(message, 20),
      .name = {text, name_bytes},
      .text = {text + name_bytes, message.size() - note_header_bytes - name_bytes},
  };
  if (part.total > most_note_bytes || part.offset > part.total) return std::nullopt;
  if (part.text.size() > part.total - part.offset) return std::nullopt;
  if (part.text.empty() && part.total != 0) return std::nullopt;  // it would never end
  const size_t room = room_behind(name_bytes);
  const bool last = part.offset + part.text.size() == part.total;
  if (part.offset % room != 0 || (!last && part.text.size() != room)) return std::nullopt;
  return part;
}

bool overlaps(const std::vector<std::pair<size_t, size_t>>& parts, size_t offset, size_t bytes) {
  return std::ranges::any_of(parts, [&](const auto& part) {
    return offset < part.first + part.second && part.first < offset + bytes;
  });
}

}  // namespace

std::vector<std::vector<std::byte>> messages_of(std::string_view from, std::string_view text,
                                                uint64_t number) {
  const size_t room = room_behind(from.size());
  std::vector<std::vector<std::byte>> out;
  size_t offset = 0;
  do {
    const std::string_view part = text.substr(offset, room);
    std::vector<std::byte>& message =
        out.emplace_back(note_header_bytes + from.size() + part.size());
    std::memcpy(message.data(), magic.data(), magic.size());
    put(message, 4, static_cast<uint16_t>(from.size()));
    put(message, 8, number);
    put(message, 16, static_cast<uint32_t>(text.size()));
    put(message, 20, static_cast<uint32_t>(offset));
    std::ranges::copy(std::as_bytes(std::span(from)), message.begin() + note_header_bytes);
    std::ranges::copy(std::as_bytes(std::span(part)),
                      message.end() - static_cast<ptrdiff_t>(part.size()));
    offset += part.size();
  } while (offset < text.size());
  return out;
}

std::optional<Note> NoteAssembly::take(uint64_t sender, std::span<const std::byte> message) {
  const std::optional<Part> part = parse(message);
  if (!part) return ++dropped_, std::nullopt;
  if (part->text.size() == part->total) {
    return Note{std::string(part->name), std::string(part->text)};
  }
  auto at = begun_.find({sender, part->number});
  if (at == begun_.end()) {
    size_t& all = begun_bytes_[sender];
    if (part->total > most_begun_bytes - all) return ++dropped_, std::nullopt;
    Begun begun{.note = {std::string(part->name), std::string(part->total, '\0')},
                .parts = {},
                .missing = part->total};
    at = begun_.emplace(Key{sender, part->number}, std::move(begun)).first;
    all += part->total;
  }
  Begun& begun = at->second;
  if (begun.note.text.size() != part->total || begun.note.from != part->name ||
      overlaps(begun.parts, part->offset, part->text.size())) {
    return ++dropped_, std::nullopt;
  }
  begun.note.text.replace(part->offset, part->text.size(), part->text);
  begun.parts.emplace_back(part->offset, part->text.size());
  begun.missing -= part->text.size();
  if (begun.missing != 0) return std::nullopt;
  Note whole = std::move(begun.note);
  begun_.erase(at);
  const auto all = begun_bytes_.find(sender);
  all->second -= whole.text.size();
  if (all->second == 0) begun_bytes_.erase(all);
  return whole;
}

void NoteAssembly::forget(uint64_t sender) {
  std::erase_if(begun_, [&](const auto& entry) { return entry.first.first == sender; });
  begun_bytes_.erase(sender);
}

}  // namespace urma::nixl
