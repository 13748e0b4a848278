#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "urma/core/observed.h"
#include "urma/core/result.h"
#include "urma/core/statistics.h"

namespace urma::engine {

// What a device's page says, as bytes. It explains itself: besides the values it holds their names,
// units and meanings, so whoever reads it need not be of the same version.
//
//   a header    magic, layout, how much of what follows, a checksum of all that never changes
//   text        facts and metrics, a line each
//   two slots   the values of one moment, and a checksum
//
// The writer fills the slots in turn, so one of them is whole whenever its process stops or dies;
// the reader copies the page, and takes the newer slot whose checksum is right. Nobody waits, and
// nobody maps a file that another process could cut off.
class StatsPage {
 public:
  static constexpr size_t most_bytes = 65'536;

  StatsPage() = default;
  // The metrics of `facts` are those that this device has beside `all_metrics`. The page begins
  // with zeros.
  explicit StatsPage(const ObservedDevice& facts);

  std::span<const std::byte> bytes() const { return bytes_; }

  // The bytes to write next, and where. Good until the next call; allocates nothing.
  struct Write {
    std::span<const std::byte> bytes;
    size_t offset;
  };
  // `more`: of the device's own metrics; the last ones may lack.
  Write next(const Statistics& statistics, Time moment, std::span<const uint64_t> more = {});

  // Any bytes. Errors: invalid_argument (no page), version_mismatch (a later layout), io_error
  // (damaged, or not all there); would_block: both slots are being written, read it again. The
  // message goes on after the name of the file.
  static Result<ObservedDevice> parse(std::span<const std::byte> bytes);

 private:
  std::vector<std::byte> bytes_;
  size_t slots_at_ = 0;
  size_t own_metrics_ = 0;
  uint64_t reports_ = 0;
};

}  // namespace urma::engine
