// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/urma.hpp"

namespace urma::apps::info {

inline constexpr uint64_t mebibyte = 1 << 20;

// The machine, as the checks see it: files below a root directory, and functions for what no file
// contains. Tests make Hosts of their own.
struct Host {
  std::filesystem::path root = "/";
  uint32_t uid = 0;
  std::map<std::string, std::string> environment;

  struct Space {
    uint64_t total_bytes = 0;
    uint64_t free_bytes = 0;
  };
  std::function<std::optional<Space>(const std::string& path)>
      space;  // returns nothing if there is no such path
  std::function<bool(const std::string& path)> may_write;
  // Returns whether a living process has a lock on this file.
  std::function<bool(const std::string& path)> held;
  std::function<Result<void>(const std::string& device)> open;

  double clock_ns = 0;  // the time that reading the clock takes
  bool loopback_down = false;

  struct Kernel {
    bool segmentation = true;  // UDP_SEGMENT
    bool coalescing = true;    // UDP_GRO
    bool file_locks = true;    // F_OFD_SETLK
    bool futex = true;
    bool timers = true;  // eventfd, timerfd
  } kernel;

  std::filesystem::path at(std::string_view path) const { return root / path.substr(1); }
  bool has(std::string_view path) const;
  // Returns nothing if there is no such file, or if it cannot be read.
  std::optional<std::string> text(std::string_view path) const;
  // Returns the file's first line that begins with these words, without them and the blanks behind
  // them.
  std::optional<std::string> line(std::string_view path, std::string_view begin = {}) const;
  std::optional<uint64_t> number(std::string_view path) const;
  // Returns the names in a directory, sorted; empty if there are none.
  std::vector<std::string> names(std::string_view path) const;
};

// Returns the machine and the process in which this runs.
Host this_host();

// Returns UINT64_MAX for "max" and "unlimited", nothing for a word that is not a number.
std::optional<uint64_t> parse_number(std::string_view text);

}  // namespace urma::apps::info
