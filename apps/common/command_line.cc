#include "apps/common/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>

#include "apps/common/near_names.h"

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
  std::deque<Typed> typed;  // a deque, because the options refer to its elements
};

CommandLine::CommandLine(std::string program)
    : program_(std::move(program)), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag();
  flag("-h,--help", help_);
  flag("--version", version_);
}

CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& names, bool& target) {
  parser_->app.add_flag(names, target);
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

CommandLine::Asked CommandLine::parse(int count, char** arguments) {
  try {
    parser_->app.parse(count, arguments);
  } catch (const CLI::ExtrasError&) {
    refuse_rest();
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string_view why = e.what();  // "--size: 1 required TEXT missing"
    usage(fmt::format("{} takes one value, and may be given once. Fix: see {} --help",
                      why.substr(0, why.find(':')), program_));
  } catch (const CLI::ParseError& e) {
    usage(fmt::format("{}. Fix: see {} --help", e.what(), program_));
  }
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
