// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_words.h"

#include <algorithm>
#include <cctype>

#include "apps/common/shell_scripts.h"

namespace urma::apps {
namespace {

// An entry of a help: "  -w, --watch SECONDS   repeat every SECONDS".
struct Entry {
  std::vector<std::string> names;
  std::string placeholder;
  std::string meaning;
};

// Removes the first word from `rest` and returns it.
std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size());
  return word;
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

bool is_placeholder(std::string_view word) {
  if (word.starts_with('[')) return word.ends_with(']');
  const auto shouts = [](char c) {
    return std::isupper(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("=:-").find(c) != std::string_view::npos;
  };
  return !word.empty() && std::ranges::all_of(word, shouts);
}

Entry read_entry(std::string_view line) {
  Entry out;
  std::string_view rest = line.substr(2);
  bool more = true;
  while (more && rest.starts_with('-')) {
    std::string_view name = take_word(rest);
    more = name.ends_with(',');
    if (more) name.remove_suffix(1);
    out.names.emplace_back(name);
    if (rest.starts_with(' ')) rest.remove_prefix(1);
  }
  // Behind two blanks the meaning begins, which may begin in capitals.
  if (is_placeholder(rest.substr(0, rest.find(' ')))) out.placeholder = take_word(rest);
  out.meaning = without_blanks(rest);
  return out;
}

std::vector<Entry> read_entries(std::string_view help) {
  std::vector<Entry> out;
  bool open = false;  // lines that continue the last entry may follow
  for (size_t at = 0; at < help.size();) {
    const size_t end = std::min(help.find('\n', at), help.size());
    const std::string_view line = help.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("  -")) {
      out.push_back(read_entry(line));
      open = true;
    } else if (open && line.starts_with("          ")) {
      out.back().meaning += " " + std::string(without_blanks(line));
    } else {
      open = false;
    }
  }
  return out;
}

// Returns the first clause: a shell has a line for it.
std::string first_clause(std::string text) {
  for (const std::string_view end : {". ", "; ", "  "}) text = text.substr(0, text.find(end));
  while (text.ends_with('.')) text.pop_back();
  return text;
}

// Not every help shows the options that print it.
bool gives_help(const CommandWords::Option& option) {
  return option.names.back().starts_with("--help");
}

}  // namespace

void CommandWords::describe(std::string_view help) {
  const std::vector<Entry> entries = read_entries(help);
  std::erase_if(options, [&](Option& option) {
    const auto names_it = [&](const Entry& entry) {
      return std::ranges::find_first_of(entry.names, option.names) != entry.names.end();
    };
    const auto entry = std::ranges::find_if(entries, names_it);
    if (entry == entries.end()) return !gives_help(option);
    if (!entry->meaning.empty()) option.meaning = first_clause(entry->meaning);
    std::string_view placeholder = entry->placeholder;
    if (placeholder.starts_with('[')) {
      option.value.optional = true;
      placeholder = placeholder.substr(1, placeholder.size() - 2);
    }
    if (!placeholder.empty()) option.value.placeholder = placeholder;
    return false;
  });
}

std::vector<NamedShell> all_shells() {
  return {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
}

}  // namespace urma::apps
