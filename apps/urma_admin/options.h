// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace urma::apps::admin {

// A kind of objects that processes have on a device.
// `rc` and `tpreuse` are kinds of UMDK that liburma does not have.
enum class Resource : uint8_t { jfc, jfs, jfr, jetty, jetty_group, rc, seg, tp, tpreuse, stats };

struct Options {
  enum class Mode : uint8_t { show, help, version };

  Mode mode = Mode::show;
  std::string device;                // empty: all
  std::optional<Resource> resource;  // without it the devices themselves are shown
  std::optional<uint64_t> id;        // of one resource; of `stats`: a process
  bool topology = false;             // the peers of the devices are shown
  bool whole = false;                // also what the devices can do
  bool json = false;
};

// Reads the command line, or throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);

std::string help();

}  // namespace urma::apps::admin
