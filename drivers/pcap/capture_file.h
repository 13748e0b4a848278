#pragma once

#include <memory>
#include <string>

#include "base/not_inherited.h"
#include "base/region.h"
#include "drivers/driver.h"
#include "drivers/pcap/pcapng.h"

namespace urma::drivers::pcap {

struct CaptureSettings {
  std::string path;
  uint64_t snap_bytes = 0;   // of each IP packet; 0: all
  uint64_t limit_bytes = 0;  // of the file; 0: none
  SettingList options = {};  // as they were read, for whoever asks
};

// A pcapng file that grows. Packets gather in memory and are written in large pieces. Where no more
// can be written the file is cut to its last whole block and ended there, and what comes later is
// counted.
class CaptureFile {
 public:
  // Over what was there. Errors: it cannot be opened or written, or is being written already.
  static Result<std::unique_ptr<CaptureFile>> open(const CaptureSettings& settings,
                                                   std::string_view name,
                                                   std::string_view description);
  // Writes what is left, and how many packets there were.
  ~CaptureFile();

  // Memory for a whole IP packet of so many bytes, until the next call; `end` makes it the file's.
  // Null: it is not captured, and counted. There is room for so many at a time; then `make_room`.
  static constexpr size_t at_once = 64;
  std::byte* begin(size_t bytes);
  void end(Direction direction, Duration since_1970, size_t bytes);

  // What was gathered since `mark` can be taken back, as long as none of the calls below is
  // between.
  struct Mark {
    size_t gathered;
    uint64_t seen;
    uint64_t missing;
  };
  Mark mark() const { return {gathered_, seen_, missing_}; }
  void take_back(const Mark& mark);

  // Writes if it is much.
  void make_room();
  // Writes if it is much, or has waited for a while.
  void tend(Time now);
  // When to call that at the latest.
  Time due() const { return due_; }
  // Packets that are not in the file and will not be.
  uint64_t missing() const { return missing_; }
  // As if this process had been killed.
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
  size_t gathered_ = 0;      // bytes of whole blocks in `memory_`
  uint64_t offset_ = 0;      // of the file, where they go
  Time due_ = never;         // unless something has been gathered
  Duration latest_{};        // time of a packet, since 1970
  uint64_t seen_ = 0;        // packets
  uint64_t missing_ = 0;     // of them
  std::string why_stopped_;  // empty: it goes on
};

}  // namespace urma::drivers::pcap
