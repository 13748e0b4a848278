// SPDX-License-Identifier: Apache-2.0
#include "engine/object_slots.h"

#include <algorithm>
#include <cstring>

#include "base/crc32.h"
#include "jetty/jetty.h"
#include "urma/core/order.h"

namespace urma::engine {
namespace {

constexpr uint32_t least_object_bytes = 16;

struct ObjectsStart {
  uint32_t checksum;  // of what follows, up to the last row
  uint32_t rows;
  uint64_t reports;
  uint32_t more_jetties;
  uint32_t more_jfcs;
  uint32_t more_segments;
  uint32_t unused;
};
static_assert(sizeof(ObjectView) == 56 && std::is_trivially_copyable_v<ObjectView>,
              "it is the row of a page");

constexpr SlotFormat objects_format{.rows = ObjectViews::most, .row_bytes = sizeof(ObjectView)};

size_t bytes_of_objects(uint32_t rows, uint32_t row_bytes) {
  return sizeof(ObjectsStart) + size_t{rows} * row_bytes;
}

uint32_t checksum_of_objects(std::span<const std::byte> slot) {
  const auto covered = slot.subspan(sizeof(ObjectsStart::checksum));
  return crc32_finish(crc32_update(crc32_start, covered.data(), covered.size()));
}

std::string jetty_state_in(uint8_t state) {
  switch (static_cast<jetty::JettyState>(state)) {
    case jetty::JettyState::reset:
      return "reset";
    case jetty::JettyState::ready:
      return "ready";
    case jetty::JettyState::suspended:
      return "suspended";
    case jetty::JettyState::error:
      return "error";
  }
  return "?";
}

std::optional<uint32_t> object_number_in(uint32_t value) {
  return value == ObjectView::none ? std::nullopt : std::optional(value);
}

ObservedJetty jetty_in(const ObjectView& row) {
  return {.kind = row.kind == ObjectKind::jfs     ? "jfs"
                  : row.kind == ObjectKind::jfr   ? "jfr"
                  : row.kind == ObjectKind::group ? "jetty_group"
                                                  : "jetty",
          .id = row.id,
          .state = jetty_state_in(row.state),
          .sends = row.sends,
          .receives = row.receives,
          .jfc = row.jfc,
          .receives_jfc = object_number_in(row.receives_jfc),
          .jfr = object_number_in(row.jfr),
          .weight = row.weight,
          .urgent = row.urgent == 1,
          .unreliable = row.how == static_cast<uint8_t>(ServiceMode::unreliable),
          .outstanding = row.outstanding};
}

void add_object(const ObjectView& row, ObservedObjects& out) {
  switch (row.kind) {
    case ObjectKind::jetty:
    case ObjectKind::jfs:
    case ObjectKind::jfr:
    case ObjectKind::group:
      out.jetties.push_back(jetty_in(row));
      return;
    case ObjectKind::jfc:
      out.jfcs.push_back({.number = row.id, .depth = row.receives});
      return;
    case ObjectKind::segment: {
      const auto rights = static_cast<Rights>(row.how);
      out.segments.push_back({.token_id = row.id,
                              .address = row.address,
                              .bytes = row.bytes,
                              .rights = is_valid(rights) ? rights : Rights::local_only});
      return;
    }
  }
  // A later version may have other kinds.
}

}  // namespace

std::string ObjectSlots::format() { return objects_format.text(); }

size_t ObjectSlots::bytes() {
  return 2 * bytes_of_objects(objects_format.rows, objects_format.row_bytes);
}

std::span<std::byte> ObjectSlots::fill(std::span<std::byte> slots, uint64_t reports,
                                       const ObjectViews& objects) {
  const auto rows = std::as_bytes(objects.shown());
  const auto slot = slots.subspan(reports % 2 * (bytes() / 2), sizeof(ObjectsStart) + rows.size());
  ObjectsStart start{.checksum = 0,
                     .rows = objects.count,
                     .reports = reports,
                     .more_jetties = objects.more_jetties,
                     .more_jfcs = objects.more_jfcs ? 1u : 0u,
                     .more_segments = objects.more_segments,
                     .unused = 0};
  std::memcpy(slot.data(), &start, sizeof start);
  if (!rows.empty()) std::memcpy(slot.data() + sizeof start, rows.data(), rows.size());
  start.checksum = checksum_of_objects(slot);
  std::memcpy(slot.data(), &start.checksum, sizeof start.checksum);
  return slot;
}

bool ObjectSlots::read_format(std::string_view text) {
  return format_.read(text, least_object_bytes);
}

size_t ObjectSlots::total_bytes() const {
  return format_.rows == 0 ? 0 : 2 * bytes_of_objects(format_.rows, format_.row_bytes);
}

Result<ObservedObjects> ObjectSlots::parse(std::span<const std::byte> slots) const {
  std::span<const std::byte> newest;
  ObjectsStart latest{};
  for (const size_t offset : {size_t{0}, total_bytes() / 2}) {
    ObjectsStart start;
    std::memcpy(&start, slots.data() + offset, sizeof start);
    if (start.rows > format_.rows || start.reports <= latest.reports) continue;
    const auto slot = slots.subspan(offset, bytes_of_objects(start.rows, format_.row_bytes));
    if (start.checksum != checksum_of_objects(slot)) continue;
    newest = slot;
    latest = start;
  }
  if (newest.empty()) {
    return Error{Status::would_block, "is damaged, or being written. Fix: run urma_stat again"};
  }
  ObservedObjects out{.jetties = {},
                      .jfcs = {},
                      .segments = {},
                      .more_jetties = latest.more_jetties,
                      .more_jfcs = latest.more_jfcs != 0,
                      .more_segments = latest.more_segments};
  for (uint32_t i = 0; i < latest.rows; ++i) {
    ObjectView row{};  // values that are missing are 0
    std::memcpy(static_cast<void*>(&row), newest.data() + bytes_of_objects(i, format_.row_bytes),
                std::min<size_t>(sizeof row, format_.row_bytes));
    add_object(row, out);
  }
  return out;
}

}  // namespace urma::engine
