// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "engine/slot_format.h"
#include "transport/channel_view.h"
#include "urma/core/observed.h"
#include "urma/core/result.h"

namespace urma::engine {

// The end of a device's page: two slots with its channels, a row for each channel and path. They
// are written in turn, each with a checksum, as the slots of the metrics are (StatsPage). A line of
// the page's text says how many rows a slot has and how long they are. A later version may append
// values to a row: a reader ignores those that it does not know, and does not know those that are
// missing.
class ChannelSlots {
 public:
  static constexpr uint32_t most_rows = 64;

  // Returns the line's value, and the bytes of both slots.
  static std::string format();
  static size_t bytes();

  // Fills the next of two slots with at most `most_rows` rows, and returns the part of it that is
  // to be written. `more`: channels without a row. Does not allocate.
  static std::span<std::byte> fill(std::span<std::byte> slots, uint64_t reports,
                                   std::span<const transport::ChannelView> rows, uint32_t more);

  // Reads what `format` returned. Returns false if it is malformed, or not of this kind.
  bool read_format(std::string_view text);
  // Returns how many bytes both slots have; 0 if the page has none.
  size_t total_bytes() const { return 2 * slot_bytes(); }
  // Reads the newer slot, whatever the bytes are. `device`: why its channels use another congestion
  // control than the one that was asked for. Errors: would_block (both slots are being written).
  Result<ObservedChannels> parse(std::span<const std::byte> slots,
                                 const ObservedDevice& device) const;

 private:
  size_t slot_bytes() const;

  SlotFormat format_;
};

}  // namespace urma::engine
