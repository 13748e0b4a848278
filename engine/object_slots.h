// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "engine/object_view.h"
#include "engine/slot_format.h"
#include "urma/core/observed.h"
#include "urma/core/result.h"

namespace urma::engine {

// The part of a device's page behind the channels: two slots with its objects, written in turn, as
// ChannelSlots are. A later version may append values to a row.
class ObjectSlots {
 public:
  // Returns the value of the page's line, and the bytes of both slots.
  static std::string format();
  static size_t bytes();

  // Fills the next of two slots, and returns the part of it that is to be written. Does not
  // allocate.
  static std::span<std::byte> fill(std::span<std::byte> slots, uint64_t reports,
                                   const ObjectViews& objects);

  // Reads what `format` returned. Returns false if it is malformed, or not of this kind.
  bool read_format(std::string_view text);
  // Returns how many bytes both slots have; 0 if the page has none.
  size_t total_bytes() const;
  // Reads the newer slot, whatever the bytes are. Errors: would_block (both are being written).
  Result<ObservedObjects> parse(std::span<const std::byte> slots) const;

 private:
  SlotFormat format_;
};

}  // namespace urma::engine
