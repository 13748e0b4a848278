#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "apps/common/failure.h"

namespace urma::apps {

// Runs a program's body and returns the exit code. An exception is printed on stderr as one line,
// PROGRAM: what failed, why, and the fix. Exit::ok becomes capture_incomplete if a capture of one
// of its devices lacks packets.
int run_program(std::string_view program, const std::function<Exit()>& body);

// The version of the library that this program is built with: 0.2.0.
std::string library_version();

}  // namespace urma::apps
