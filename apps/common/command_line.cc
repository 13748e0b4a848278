// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <map>

#include "apps/common/near_names.h"
#include "apps/common/output.h"

namespace urma::apps {
namespace {

constexpr int most_words = 1 << 20;

}  // namespace

struct CommandLine::Parser {
  struct Typed {
    Read read;
    Valid valid;
    std::string word{};
    CLI::Option* option = nullptr;
  };

  CLI::App app;
  std::map<const CLI::Option*, std::vector<std::string>> offered;
  std::deque<Typed> typed;  // a deque, because the options refer to its elements
};

CommandLine::CommandLine(std::string program, Help help)
    : program_(std::move(program)), help_text_(help), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag();
  flag("-h,--help", help_);
  flag("--version", version_);
  text("--completion", shell_);
}

CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& names, bool& target) {
  parser_->app.add_flag(names, target)->disable_flag_override();
}

void CommandLine::text(const std::string& names, std::string& target) {
  parser_->app.add_option(names, target);
}

void CommandLine::texts(const std::string& names, std::vector<std::string>& target) {
  parser_->app.add_option(names, target)->expected(1)->take_all();
}

void CommandLine::words(std::vector<std::string>& target) {
  parser_->app.add_option("words", target)->expected(0, most_words);
}

void CommandLine::add(const std::string& names, Read read, Valid valid) {
  Parser::Typed& one =
      parser_->typed.emplace_back(Parser::Typed{std::move(read), std::move(valid)});
  one.option = parser_->app.add_option(names, one.word);
}

void CommandLine::offer(const std::string& name, std::vector<std::string> words) {
  const std::string first = name.substr(0, name.find(','));
  parser_->offered[parser_->app.get_option(first)] = std::move(words);
}

CommandLine::Asked CommandLine::parse(int count, char** arguments) {
  try {
    parser_->app.parse(count, arguments);
  } catch (const CLI::ExtrasError&) {
    refuse_rest();
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string_view flag = flag_with_value(count, arguments);
    if (!flag.empty()) usage(fmt::format("{} takes no value. Fix: give it alone", flag));
    const std::string_view why = e.what();  // "--size: 1 required TEXT missing"
    usage(fmt::format("{} takes one value, and may be given once. Fix: see {} --help",
                      why.substr(0, why.find(':')), program_));
  } catch (const CLI::ParseError& e) {
    usage(fmt::format("{}. Fix: see {} --help", e.what(), program_));
  }
  if (given("--completion")) answer_completion();
  if (help_all_) return Asked::help_all;
  if (help_) return Asked::help;
  if (version_) return Asked::version;
  for (const Parser::Typed& one : parser_->typed) {
    if (one.option->count() == 0 || one.read(one.word)) continue;
    usage(fmt::format("{}: \"{}\" is invalid. Fix: give {}", one.option->get_name(), one.word,
                      one.valid()));
  }
  return Asked::nothing;
}

CommandWords CommandLine::command_words() const {
  CommandWords out{.program = program_};
  for (const CLI::Option* const option : parser_->app.get_options()) {
    std::vector<std::string> choices;
    if (const auto at = parser_->offered.find(option); at != parser_->offered.end()) {
      choices = at->second;
    }
    if (option->get_positional()) {
      std::string name = option->get_name();
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
      out.words.push_back({.placeholder = name, .choices = std::move(choices)});
      // The first word of a list is a command.
      const bool list = option->get_items_expected_max() > 1;
      if (list) out.words.push_back({.placeholder = "FILE", .repeats = true});
      continue;
    }
    CommandWords::Option one;
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    one.value.choices = std::move(choices);
    if (option->get_items_expected_max() > 0) one.value.placeholder = "VALUE";
    if (option->get_single_name() == "help") one.meaning = "print the help";
    if (option->get_single_name() == "help-all") one.meaning = "print all options";
    if (option->get_single_name() == "version") one.meaning = "print the version";
    one.repeats = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    out.options.push_back(std::move(one));
  }
  if (help_text_ != nullptr) out.describe(help_text_());
  return out;
}

// Prints the script for the shell that the user named.
void CommandLine::answer_completion() const {
  std::string names;
  for (const NamedShell& shell : all_shells()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shell.name);
    if (shell.name != shell_) continue;
    print(shell.script(command_words()));
    throw Answered();
  }
  usage(fmt::format("--completion: \"{}\" is invalid. Fix: give one of {}", shell_, names));
}

std::string_view CommandLine::flag_with_value(int count, char** arguments) const {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    const std::string_view name = word.substr(0, word.find('='));
    if (name.size() == word.size()) continue;
    const CLI::Option* const option = parser_->app.get_option_no_throw(std::string(name));
    if (option != nullptr && option->get_items_expected_max() == 0) return name;
  }
  return {};
}

// Refuses words that belong to no option.
void CommandLine::refuse_rest() const {
  const std::string word = parser_->app.remaining().front();
  if (!word.starts_with('-')) {
    usage(fmt::format("\"{}\" is one word too many. Fix: see {} --help", word, program_));
  }
  const std::string instead = instead_of(word.substr(0, word.find('=')));
  usage(fmt::format("\"{}\" is not an option of {}. Fix: {}see {} --help", word, program_,
                    instead.empty() ? "" : instead + "; ", program_));
}

// Returns what to type instead of an option that does not exist; empty if that is not known.
std::string CommandLine::instead_of(const std::string& word) const {
  // "-t5" is the option -t with a value.
  const bool is_short = word.size() > 1 && word[1] != '-';
  const auto found = foreign_.find(is_short ? std::string_view(word).substr(0, 2) : word);
  if (found != foreign_.end()) return std::string(found->second);
  std::vector<std::string> names;
  for (const CLI::Option* const option : parser_->app.get_options()) {
    if (!option->get_lnames().empty()) names.push_back(option->get_name());
  }
  const std::string near = near_names(word, names);
  return near.empty() ? "" : "perhaps " + near;
}

bool CommandLine::given(const std::string& name) const {
  return parser_->app.get_option(name)->count() > 0;
}

std::optional<std::string> CommandLine::first_given(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (given(name)) return name;
  }
  return std::nullopt;
}

void CommandLine::exclude(const std::vector<std::string>& names) const {
  std::string first;
  for (const std::string& name : names) {
    if (!given(name)) continue;
    if (!first.empty()) {
      usage(fmt::format("{} and {} exclude each other. Fix: leave one of them out", first, name));
    }
    first = name;
  }
}

}  // namespace urma::apps
