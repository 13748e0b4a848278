// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/channel_slots.h"
#include "engine/object_slots.h"
#include "urma/core/observed.h"
#include "urma/core/result.h"
#include "urma/core/statistics.h"

namespace urma::engine {

// The statistics page of a device: the bytes of the file that other processes read. It contains the
// names, units and meanings of its values, so a reader of another version understands it.
//
//   a header    magic, layout, sizes, and a checksum of the header and the text
//   text        facts and metrics, one line each
//   two slots   the values of one moment, and a checksum
//   two slots   the channels of one moment, and a checksum (ChannelSlots)
//   two slots   the Jetties, queues and segments of one moment, and a checksum (ObjectSlots)
//
// The writer fills the slots of a pair alternately, so one of them is complete whenever its process
// stops or dies. The reader copies the page, and takes the newer slot of each pair with a correct
// checksum. A page of an older version has no channels, or no objects; an older reader does not
// look behind what it knows. Neither waits for the other, and no process maps a file that another
// one could truncate.
class StatsPage {
 public:
  static constexpr size_t most_bytes = 65'536;

  StatsPage() = default;
  // The metrics of `facts` are those that this device has in addition to `all_metrics`. All values
  // are zero until the first `next`.
  explicit StatsPage(const ObservedDevice& facts);

  std::span<const std::byte> bytes() const { return bytes_; }

  // The bytes to write next, and their offset in the file. Valid until the next call.
  struct Write {
    std::span<const std::byte> bytes;
    size_t offset;
  };
  // Fills the next slot; does not allocate. `more`: the values of the device's additional metrics;
  // the last ones may be missing.
  Write next(const Statistics& statistics, Time moment, std::span<const uint64_t> more = {});
  // As `next`, for the channels; `more`: those without a row.
  Write next_channels(std::span<const transport::ChannelView> rows, uint32_t more);

  // The same for the objects.
  Write next_objects(const ObjectViews& objects);

  // Parses arbitrary bytes. Errors: invalid_argument (not a page), version_mismatch (a later
  // layout), io_error (damaged or incomplete), would_block (both slots are being written: read the
  // file again). The message continues a sentence that begins with the name of the file.
  static Result<ObservedDevice> parse(std::span<const std::byte> bytes);

 private:
  std::vector<std::byte> bytes_;
  size_t slots_at_ = 0;
  size_t channels_at_ = 0;
  size_t objects_at_ = 0;
  size_t own_metrics_ = 0;
  uint64_t reports_ = 0;
  uint64_t channel_reports_ = 0;
  uint64_t object_reports_ = 0;
};

}  // namespace urma::engine
