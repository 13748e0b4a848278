// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/log_choice.h"
#include "urma/core/configuration.h"
#include "urma/core/log.h"
#include "urma/core/result.h"

namespace urma::engine {

// One line of a configuration file.
struct ConfiguredLine {
  std::string name;
  std::string value;
  size_t line = 0;  // the first line has the number 1
};

// Parses the text of a configuration file, which may be anything. `path` begins each error, before
// the number of the line. Errors: invalid_argument.
Result<std::vector<ConfiguredLine>> parse_configuration(std::string_view text,
                                                        const std::string& path);

// Returns a sentence for each of these variables ("NAME=VALUE") that begins with URMA_ and is not
// one of the library's. Those that begin with URMA_TEST_ are left out.
std::vector<std::string> unknown_variables(const char* const* environment);

// The settings of the environment and of the file of this process.
struct UserSettings {
  Configuration configuration;  // as `urma::configuration` returns it
  LogChoice log;
  std::vector<std::string> log_warnings;  // about levels of the log that have no effect, with a fix

  // Returns a setting, or null if the user did not set it.
  const Setting* chosen(std::string_view name) const;
};
Result<UserSettings> read_user_settings();

// Fills the options of a log that the application did not ask for, if the user did. The lines, and
// once per process the warnings, are written to stderr.
void configure_log(LogOptions& log, const UserSettings& settings);

}  // namespace urma::engine
