#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/common/servers.h"
#include "apps/urma_notify/messages.h"

namespace urma::notify {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, serve, send };

  Mode mode = Mode::help;
  std::string path;  // of the folder, or of the file
  std::string host = "localhost";
  std::string name;                  // there
  std::vector<std::string> devices;  // empty: chosen
  bool replace = false;
  uint64_t bytes_per_second = 0;  // at most; 0: as fast as it goes
  uint64_t patience_seconds = 10;
  int speaks = protocol;  // another one in tests only
};

// Fails with Exit::usage.
Options parse_options(int count, char** arguments);
std::string help();

// The receiver, for a client that sends this file.
apps::Service service(const std::string& file = "FILE");

}  // namespace urma::notify
