// SPDX-License-Identifier: Apache-2.0
#include "apps/common/captures.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "apps/common/output.h"

namespace urma::apps {
namespace {

std::atomic<bool> incomplete{false};

// The last block of a pcapng file (an Interface Statistics Block): how many packets there were, how
// many of them are missing, and why.
struct End {
  uint64_t seen = 0;
  uint64_t missing = 0;
  std::string why;
};

template <class Word>
Word word_at(std::span<const char> bytes, size_t at) {
  Word word{};
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

std::optional<End> parse_end(std::span<const char> block) {
  constexpr uint32_t interface_statistics = 5;
  constexpr size_t head = 20;  // type, length, interface, time
  constexpr size_t tail = 4;   // length again
  constexpr uint16_t comment = 1;
  constexpr uint16_t received = 4;
  constexpr uint16_t dropped = 5;
  if (block.size() < head + tail || word_at<uint32_t>(block, 0) != interface_statistics) return {};
  End end;
  for (size_t at = head; at + 4 + tail <= block.size();) {
    const auto code = word_at<uint16_t>(block, at);
    const auto bytes = word_at<uint16_t>(block, at + 2);
    at += 4;
    if (code == 0 || at + bytes + tail > block.size()) break;
    if (code == comment) end.why.assign(block.data() + at, bytes);
    if (code == received && bytes == 8) end.seen = word_at<uint64_t>(block, at);
    if (code == dropped && bytes == 8) end.missing = word_at<uint64_t>(block, at);
    at += (size_t{bytes} + 3) & ~size_t{3};
  }
  return end;
}

// Reads the last block of an open file. The last four bytes of the file are its length.
std::optional<End> read_end(int file, off_t size) {
  std::array<char, 512> block{};
  uint32_t bytes = 0;
  if (size < 4 || pread(file, &bytes, sizeof bytes, size - 4) != sizeof bytes) return {};
  if (bytes < 4 || bytes > block.size() || bytes > size) return {};
  if (pread(file, block.data(), bytes, size - bytes) != static_cast<ssize_t>(bytes)) return {};
  return parse_end(std::span(block).first(bytes));
}

std::string fix_for(const Setting& setting, const std::string& why) {
  if (why.find("limit was reached") != std::string::npos) {
    return "raise limit= in pcap(...) or leave it out, or keep less of each packet (snap=128)";
  }
  if (why.find(std::strerror(ENOSPC)) != std::string::npos ||
      why.find(std::strerror(EDQUOT)) != std::string::npos) {
    if (setting.origin == Origin::environment) {
      return fmt::format("make room there (df -h {}), or set {} to another directory",
                         setting.value, setting.source);
    }
    return fmt::format("make room there (df -h {}), or name a file elsewhere", setting.value);
  }
  if (why.find(std::strerror(EFBIG)) != std::string::npos) {
    return "allow larger files (ulimit -f unlimited), or keep less of each packet (snap=128)";
  }
  return "name a file on another file system in pcap(file=...)";
}

}  // namespace

std::string what_capture_lacks(const Setting& setting) {
  const std::string& file = setting.value;
  struct stat about {};
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const int why = errno;
  if (descriptor < 0) {
    return fmt::format(
        "the capture {} cannot be read again, so whether packets are missing is unknown: {}. Fix: "
        "leave the file where it is until the program has ended",
        file, std::strerror(why));
  }
  const bool regular = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  const std::optional<End> end = regular ? read_end(descriptor, about.st_size) : std::nullopt;
  close(descriptor);
  if (!regular) return {};
  if (!end) {
    return fmt::format("the capture {} has no end: its last packets could not be written. Fix: {}",
                       file, fix_for(setting, ""));
  }
  if (end->missing == 0) return {};
  return fmt::format(
      "{} of {} packets are missing in the capture {}: {}. Fix: {}, and run it again", end->missing,
      end->seen, file, end->why.empty() ? "they are too large for it" : end->why,
      fix_for(setting, end->why));
}

Device Captures::watch(Device device) {
  if (const Result<SettingList> settings = device.settings()) {
    for (const Setting& setting : *settings) {
      if (setting.name.ends_with("pcap.file")) files_.push_back(setting);
    }
  }
  return device;
}

// An exception here must not change how the program ends.
Captures::~Captures() {
  try {
    for (const Setting& file : files_) {
      const std::string what = what_capture_lacks(file);
      if (what.empty()) continue;
      note_incomplete_capture();
      print_error(fmt::format("{}: {}", program_, what));
    }
  } catch (const std::exception&) {
    note_incomplete_capture();
  }
}

void note_incomplete_capture() { incomplete = true; }

Exit exit_with_captures(Exit exit) {
  return exit == Exit::ok && incomplete ? Exit::capture_incomplete : exit;
}

}  // namespace urma::apps
