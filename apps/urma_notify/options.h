// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/common/servers.h"
#include "apps/urma_notify/messages.h"

namespace urma::apps::notify {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, serve, send, demo };

  Mode mode = Mode::help;
  std::vector<std::string> paths;                  // serve: the folder; send: files, folders, "-"
  std::vector<std::string> hosts = {"localhost"};  // send: at least one
  bool named_hosts = false;                        // send: by --to
  bool json = false;
  uint64_t speed = 1;                // demo: how much faster than usual
  std::string name;                  // the name at the receiver
  std::vector<std::string> devices;  // empty if the user named none: then the program chooses
  bool replace = false;
  uint64_t bytes_per_second = 0;  // bytes per second at most; 0 means as fast as possible
  uint64_t patience_seconds = 10;
  int speaks = protocol;  // tests give another version
};

// Throws a Failure with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

// Describes the receiver, for a client with these options; for one that sends FILE.
apps::Service service(const Options& options);
apps::Service service();

}  // namespace urma::apps::notify
