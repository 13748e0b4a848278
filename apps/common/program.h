// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"

namespace urma::apps {

// Runs a program's body and returns the exit code. An exception is printed on stderr as one line,
// PROGRAM: what failed, why, and the fix. Exit::ok becomes capture_incomplete if a capture of one
// of its devices lacks packets.
// `variables`: those of the environment that the program itself reads, of which the library does
// not know.
int run_program(std::string_view program, const std::function<Exit()>& body,
                std::initializer_list<std::string_view> variables = {});

// A program whose options have the modes `help` and `version`, and others, in which `run` runs it.
template <class Options>
struct Program {
  std::string_view name;
  std::string version;  // what --version prints after the name
  std::string (*help)();
  Options (*parse)(int count, char** arguments);
  Exit (*run)(const Options& options);
  std::initializer_list<std::string_view> variables{};  // as in the function below
};

// Does all that `main` has to do: also reads the options, handles Ctrl-C (interrupt.h), and prints
// the help and the version.
template <class Options>
int run_program(const Program<Options>& program, int count, char** arguments) {
  return run_program(
      program.name,
      [&] {
        const Options options = program.parse(count, arguments);
        handle_signals();
        switch (options.mode) {
          case Options::Mode::help:
            print(program.help());
            return Exit::ok;
          case Options::Mode::version:
            print(std::string(program.name) + " " + program.version + "\n");
            return Exit::ok;
          default:
            return program.run(options);
        }
      },
      program.variables);
}

// The version of the library that this program is built with: 0.2.0.
std::string library_version();

}  // namespace urma::apps
