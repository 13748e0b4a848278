// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/not_inherited.h"
#include "base/region.h"
#include "drivers/pcap/pcapng.h"
#include "drivers/port_facts.h"

namespace urma::drivers::pcap {

// The options of pcap(...).
struct CaptureSettings {
  std::string path;
  uint64_t snap_bytes = 0;   // kept of each IP packet; 0: all
  uint64_t limit_bytes = 0;  // the largest size of the file; 0: no limit
  SettingList options = {};  // the options as they were read, for PortFacts::settings
};

// A pcapng file that grows. Packets are gathered in memory and written in large pieces. If writing
// fails, or the limit is reached, the file is cut to its last complete block and ended there, and
// later packets are only counted. Used by one thread at a time.
class CaptureFile {
 public:
  // Makes the file, or overwrites an older capture. `name` and `description` are those of the
  // interface. Errors: permission_denied, io_error, no_resources; invalid_argument (a pipe, a file
  // that is not a capture, or that another device is writing).
  static Result<std::unique_ptr<CaptureFile>> open(const CaptureSettings& settings,
                                                   std::string_view name,
                                                   std::string_view description);
  // Writes the remaining packets, and the number of packets seen and missing.
  ~CaptureFile();

  // The most packets between two calls of `make_room`.
  static constexpr size_t at_once = 64;
  // Returns memory for a whole IP packet of this size, valid until the next call; `end` adds the
  // packet to the file. Returns null if the packet is not captured, but only counted.
  std::byte* begin(size_t bytes);
  void end(Direction direction, Duration since_1970, size_t bytes);

  // A position to which `take_back` returns, which removes the packets gathered since. None of the
  // functions below may be called in between.
  struct Mark {
    size_t gathered;
    uint64_t seen;
    uint64_t missing;
  };
  Mark mark() const { return {gathered_, seen_, missing_}; }
  void take_back(const Mark& mark);

  // Writes the gathered packets if they are large enough.
  void make_room();
  // Writes the gathered packets if they are large enough, or have waited for 10 ms.
  void tend(Time now);
  // Returns the time at which `tend` must be called at the latest.
  Time due() const { return due_; }
  // Returns how many packets are not in the file.
  uint64_t missing() const { return missing_; }
  // Ends as if this process had been killed.
  void abandon();

 private:
  CaptureFile(const CaptureSettings& settings, int descriptor);

  Result<void> write_beginning(std::string_view name, std::string_view description);
  void flush();
  void stop(const char* why, size_t written);
  void write_statistics();

  static constexpr size_t most_packet_bytes = 65536 + 1024;
  static constexpr size_t most_block_bytes =
      packet_head_bytes + most_packet_bytes + packet_tail_bytes;
  static constexpr size_t much_bytes = 256 * 1024;
  static constexpr Duration patience = std::chrono::milliseconds(10);

  const CaptureSettings settings_;
  int descriptor_;
  NotInherited not_inherited_;
  Region memory_{much_bytes + at_once * most_block_bytes};
  size_t gathered_ = 0;      // bytes of complete blocks in `memory_`
  uint64_t offset_ = 0;      // in the file, where they are to be written
  Time due_ = never;         // when they must be written
  Duration latest_{};        // the time of the latest packet, since 1970
  uint64_t seen_ = 0;        // all packets
  uint64_t missing_ = 0;     // those of them that are not in the file
  std::string why_stopped_;  // empty while the file is written
};

}  // namespace urma::drivers::pcap
