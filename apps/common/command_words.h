// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace urma::apps {

// The words that a shell can offer when a user completes a command of a program: its options, as
// the command line and the help describe them. `CommandLine` makes them for `--completion SHELL`.
struct CommandWords {
  // A value of an option, or a word by its position.
  struct Word {
    std::string placeholder{};           // as in the help: FILE, HOST, N; empty if it takes none
    std::vector<std::string> choices{};  // its values, if they can be listed
    bool optional = false;               // --error [STATUS]
    bool repeats = false;                // any number of such words
  };
  struct Option {
    std::vector<std::string> names;  // "-w", "--watch"
    Word value{};
    bool repeats = false;
    std::string meaning{};  // from the help, in a line
  };

  std::string program;
  std::vector<Option> options{};
  std::vector<Word> words{};

  // Adds placeholders and meanings from a help, in which the lines of an option begin with "  -"
  // and have two blanks before the meaning. Options that the help does not show are removed: they
  // are for the programs themselves.
  void describe(std::string_view help);
};

// The names of the shells for which there are scripts.
struct NamedShell {
  std::string_view name;
  std::string (*script)(const CommandWords& words);
};
std::vector<NamedShell> all_shells();

}  // namespace urma::apps
