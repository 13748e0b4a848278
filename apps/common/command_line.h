// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/command_words.h"
#include "apps/common/failure.h"
#include "apps/common/values.h"

namespace urma::apps {

// A program's command line: options with typed values, single words, --help and --version. It
// checks each word by itself; which options go together is the program's to check, after `parse`.
//
//   CommandLine line("urma_feed", help);
//   line.value("host", options.host, Host{});
//   line.value("--count", options.count, WholeNumber{.least = 1});
//   if (line.parse(count, arguments) == Asked::help) ...
//
// Each error is a Failure with Exit::usage: OPTION: "WORD" is invalid. Fix: give what is valid.
class CommandLine {
 public:
  // A request to print something instead of running the program.
  enum class Asked : uint8_t { nothing, help, help_all, version };

  using Help = std::string (*)();

  // `program` is the command. It has -h, --help and --version, and --completion SHELL, which prints
  // the script by which a shell completes its words; `help` is the text that shows its options.
  explicit CommandLine(std::string program, Help help = nullptr);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // `names` is like "-w,--watch". A name without dashes is a word by its position. A target keeps
  // its value if the option is not given.
  void flag(const std::string& names, bool& target);
  void text(const std::string& names, std::string& target);
  // This option may be given several times.
  void texts(const std::string& names, std::vector<std::string>& target);
  // Takes all words that belong to no option.
  void words(std::vector<std::string>& target);
  template <class Value, class Target>
  void value(const std::string& names, Target& target, Value type) {
    const auto read = [type, &target](std::string_view word) {
      auto value = type.read(word);
      if (value) target = static_cast<decltype(held_by(target))>(*value);
      return value.has_value();
    };
    add(names, read, [type] { return type.valid(); });
    if constexpr (requires { type.choices(); }) offer(names, type.choices());
  }
  // An option of other programs that users may type, and what to do instead, as part of the error:
  // "give --count N".
  void foreign(std::string_view name, std::string_view instead) { foreign_[name] = instead; }
  // Shells offer these words for the option or the word of this name; others are as valid.
  void offer(const std::string& name, std::vector<std::string> words);
  // Adds --help-all, for a program with two screens of help.
  void two_screens() { flag("--help-all", help_all_); }

  // Reads the values. If the user asks for help or the version, the values are not checked. Throws
  // an Answered if the user asks for a script of completion, after printing it.
  Asked parse(int count, char** arguments);

  // Returns whether an option or a word was given. `name` is one of its names.
  bool given(const std::string& name) const;
  // Returns the first of these that was given.
  std::optional<std::string> first_given(const std::vector<std::string>& names) const;
  // Fails if two of these are in one command line.
  void exclude(const std::vector<std::string>& names) const;

 private:
  struct Parser;
  using Read = std::function<bool(std::string_view)>;
  using Valid = std::function<std::string()>;

  // The type of a target's value; for an optional target, the type inside it.
  template <class Target>
  static Target held_by(const Target&);
  template <class Target>
  static Target held_by(const std::optional<Target>&);

  void add(const std::string& names, Read read, Valid valid);
  [[noreturn]] void refuse_rest() const;
  // Returns the name of the first flag that was given a value (--flag=value), or an empty text.
  std::string_view flag_with_value(int count, char** arguments) const;
  std::string instead_of(const std::string& word) const;
  [[noreturn]] void answer_completion() const;
  CommandWords command_words() const;

  const std::string program_;
  const Help help_text_;
  const std::unique_ptr<Parser> parser_;  // uses CLI11, whose header takes seconds to compile
  std::map<std::string_view, std::string_view> foreign_;
  bool help_ = false;
  bool help_all_ = false;
  bool version_ = false;
  std::string shell_;
};

}  // namespace urma::apps
