// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/common/captures.h"
#include "apps/common/output.h"

namespace urma::apps {
namespace {

// The message may quote another process, so it is made safe for a terminal. Output that stdio still
// buffers is written before it.
void print_failure(std::string_view program, std::string_view message) {
  std::fflush(stdout);
  print_error(printable(fmt::format("{}: {}", program, message)));
}

// With a log, the library prints these warnings itself. Errors are reported by what uses the
// settings.
void warn_of_variables(std::string_view program,
                       std::initializer_list<std::string_view> variables) {
  const Result<Configuration> chosen = configuration();
  if (!chosen || chosen->settings.at(1).value != "off") return;
  const auto reads = [&](std::string_view warning) {
    return std::ranges::any_of(variables, [&](std::string_view variable) {
      return warning.starts_with(fmt::format("the variable {} ", variable));
    });
  };
  for (const std::string& one : chosen->warnings) {
    if (reads(one)) continue;
    print_error(fmt::format("{}: warning: {}", program, one));
  }
}

}  // namespace

std::string library_version() { return URMA_VERSION; }

int run_program(std::string_view program, const std::function<Exit()>& body,
                std::initializer_list<std::string_view> variables) {
  prepare_output();
  Exit exit = Exit::error;
  try {
    warn_of_variables(program, variables);
    exit = exit_with_captures(body());
  } catch (const Answered&) {
    exit = Exit::ok;
  } catch (const Failure& failure) {
    print_failure(program, failure.what());
    exit = failure.exit();
  } catch (const std::exception& e) {
    print_failure(program, fmt::format("{}. Fix: report this as a fault of {}", e.what(), program));
  }
  return static_cast<int>(exit);
}

}  // namespace urma::apps
