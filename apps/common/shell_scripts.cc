// SPDX-License-Identifier: Apache-2.0
#include "apps/common/shell_scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "urma/urma.hpp"

namespace urma::apps {
namespace {

using Word = CommandWords::Word;
using Option = CommandWords::Option;

// The kind of words that a shell offers for a value. The placeholder of the help says it, if the
// values cannot be listed.
enum class Kind : uint8_t { nothing, list, file, folder, host, device };

Kind kind_of(const Word& word) {
  if (!word.choices.empty()) return Kind::list;
  struct Named {
    std::string_view placeholder;
    Kind kind;
  };
  constexpr Named all[] = {{"FILE", Kind::file},     {"PATH", Kind::file},
                           {"DIR", Kind::folder},    {"HOST", Kind::host},
                           {"STRING", Kind::device}, {"DEVICE", Kind::device}};
  const auto found = std::ranges::find(all, word.placeholder, &Named::placeholder);
  return found == std::end(all) ? Kind::nothing : found->kind;
}

// Returns how device strings begin: "cxl:", "udp:". Those that contain another device are left out:
// a shell wants them in quotes, "fault(loss=5%):udp:".
std::vector<std::string> device_beginnings() {
  std::vector<std::string> out;
  for (const DriverInfo& driver : list_drivers()) {
    for (const FormInfo& form : driver.forms) {
      const std::string begin = driver.name + ":";
      if (!form.wraps && (out.empty() || out.back() != begin)) out.push_back(begin);
    }
  }
  return out;
}

std::vector<std::string> offers(const Word& word) {
  return kind_of(word) == Kind::device ? device_beginnings() : word.choices;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

// Returns the text with a backslash before each of these characters.
std::string escaped(std::string_view text, std::string_view characters) {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) != characters.npos) out += '\\';
    out += c;
  }
  return out;
}

// Returns the text as one word of a POSIX shell.
std::string quoted_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Returns the names of all options, or of those that always take a value.
std::vector<std::string> names_of(const CommandWords& words, bool only_with_value) {
  std::vector<std::string> out;
  for (const Option& option : words.options) {
    const bool valued = !option.value.placeholder.empty() && !option.value.optional;
    if (only_with_value && !valued) continue;
    out.insert(out.end(), option.names.begin(), option.names.end());
  }
  return out;
}

// Bash: statements that say what is offered for a word.
std::string bash_offer(const Word& word) {
  switch (kind_of(word)) {
    case Kind::list:
      return fmt::format("offered={}", quoted_word(joined(word.choices, " ")));
    case Kind::device:
      return fmt::format("offered={}; compopt -o nospace",
                         quoted_word(joined(device_beginnings(), " ")));
    case Kind::file:
      return "action=file; compopt -o filenames";
    case Kind::folder:
      return "action=directory; compopt -o filenames";
    case Kind::host:
      return "action=hostname";
    case Kind::nothing:
      break;
  }
  return "return";
}

constexpr std::string_view bash_begin =
    R"(# Completion of {0} for bash, made by: {0} --completion bash

_{0}() {{
  local word previous offered= action= position=0 skipped= at
  local -a words
  # Words end at blanks. Bash would also split them at : and =.
  read -ra words <<<"${{COMP_LINE:0:COMP_POINT}}"
  [[ ${{COMP_LINE:0:COMP_POINT}} == *[[:space:]] ]] && words+=("")
  word=${{words[-1]}} previous=${{words[-2]}}
  if [[ $word == --*=* ]]; then previous=${{word%%=*}} word=${{word#*=}}; fi
  for at in "${{words[@]:1:${{#words[@]}}-2}}"; do
    if [[ $skipped ]]; then skipped=; continue; fi
    case $at in
      {1}) skipped=yes ;;
      -*) ;;
      *) ((++position)) ;;
    esac
  done
  case $previous in
)";

constexpr std::string_view bash_end = R"(      esac ;;
  esac
  if [[ $action ]]; then
    mapfile -t COMPREPLY < <(compgen -A "$action" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
  fi
  # Bash replaces only what follows the last : or =.
  if [[ $word == *[:=]* ]]; then
    COMPREPLY=("${{COMPREPLY[@]#"${{word%"${{word##*[:=]}}"}}"}}")
  fi
}}
complete -F _{0} {0}
)";

// Zsh: the part of an argument that follows its explanation.
std::string zsh_value(const Word& word) {
  const auto choices = [&] {
    std::vector<std::string> out;
    for (const std::string& one : offers(word)) out.push_back(escaped(one, ":() "));
    return joined(out, " ");
  };
  const std::string begin =
      fmt::format("{}:{}:", word.optional ? ":" : "", escaped(word.placeholder, ":"));
  switch (kind_of(word)) {
    case Kind::list:
      return fmt::format("{}({})", begin, choices());
    case Kind::device:
      return fmt::format("{}{{compadd -S \"\" -- {}}}", begin, choices());
    case Kind::file:
      return begin + "_files";
    case Kind::folder:
      return begin + "_files -/";
    case Kind::host:
      return begin + "_hosts";
    case Kind::nothing:
      break;
  }
  return begin + " ";
}

// Fish: the options of `complete` that say what is offered for a word.
std::string fish_offer(const Word& word) {
  switch (kind_of(word)) {
    case Kind::list:
    case Kind::device:
      return fmt::format(" -a '{}'", escaped(joined(offers(word), " "), "'\\"));
    case Kind::file:
      return " -F";
    case Kind::folder:
      return " -a '(__fish_complete_directories)'";
    case Kind::host:
      return " -a '(__fish_print_hostnames)'";
    case Kind::nothing:
      break;
  }
  return "";
}

constexpr std::string_view fish_begin =
    R"(# Completion of {0} for fish, made by: {0} --completion fish

# Whether the position of the word, among those that belong to no option, is -eq or -ge this one.
function __{0}_at
    set -l position 0
    set -l skipped no
    set -l words (commandline -opc)
    for word in $words[2..]
        if test $skipped = yes
            set skipped no
            continue
        end
        switch $word
            case {1}
                set skipped yes
            case '-*'
            case '*'
                set position (math $position + 1)
        end
    end
    test $position $argv[1] $argv[2]
end

complete -c {0} -f
)";

std::string fish_option(const std::string& program, const Option& option) {
  std::string out = fmt::format("complete -c {}", program);
  std::vector<std::string> longs;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    out += fmt::format(" {} {}", is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1));
    longs.push_back(name);
  }
  if (!option.meaning.empty()) out += fmt::format(" -d '{}'", escaped(option.meaning, "'\\"));
  if (option.value.placeholder.empty()) return out + "\n";
  if (!option.value.optional) return out + " -r" + fish_offer(option.value) + "\n";
  // A value that may be left out is a word of its own to fish.
  return out + fmt::format("\ncomplete -c {} -n '__fish_prev_arg_in {}'{}\n", program,
                           joined(longs, " "), fish_offer(option.value));
}

}  // namespace

std::string bash_script(const CommandWords& words) {
  const std::string& program = words.program;
  std::vector<std::string> valued = names_of(words, true);
  // A pattern that no word matches, for a program whose options have no values.
  if (valued.empty()) valued = {"--"};
  std::string out = fmt::format(bash_begin, program, joined(valued, " | "));
  std::map<std::string, std::vector<std::string>> names_by_offer;
  for (const Option& option : words.options) {
    if (option.value.placeholder.empty()) continue;
    std::vector<std::string>& names = names_by_offer[bash_offer(option.value)];
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  for (const auto& [offer, names] : names_by_offer) {
    out += fmt::format("    {}) {} ;;\n", joined(names, " | "), offer);
  }
  out += fmt::format("    *)\n      case $word:$position in\n        -*) offered={} ;;\n",
                     quoted_word(joined(names_of(words, false), " ")));
  for (size_t i = 0; i < words.words.size(); ++i) {
    const Word& word = words.words[i];
    out += fmt::format("        *:{}) {} ;;\n", word.repeats ? "*" : std::to_string(i),
                       bash_offer(word));
  }
  return out + fmt::format(bash_end, program);
}

std::string zsh_script(const CommandWords& words) {
  std::string out = fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh, made by: {0} --completion zsh\n\n_arguments",
      words.program);
  for (const Option& option : words.options) {
    const std::string others =
        option.repeats ? "*" : fmt::format("({})", joined(option.names, " "));
    for (const std::string& name : option.names) {
      const bool valued = !option.value.placeholder.empty();
      const bool equals = valued && !option.value.optional && name.starts_with("--");
      const std::string meaning = fmt::format("[{}]", escaped(option.meaning, "[]\\"));
      out += " \\\n  " + quoted_word(others + name + (equals ? "=" : "") + meaning +
                                     (valued ? zsh_value(option.value) : ""));
    }
  }
  for (const Word& word : words.words) {
    out += " \\\n  " + quoted_word((word.repeats ? "*" : "") + zsh_value(word));
  }
  return out + "\n";
}

std::string fish_script(const CommandWords& words) {
  const std::string& program = words.program;
  std::vector<std::string> valued = names_of(words, true);
  if (valued.empty()) valued = {"--"};
  std::string out = fmt::format(fish_begin, program, joined(valued, " "));
  for (size_t i = 0; i < words.words.size(); ++i) {
    const std::string offer = fish_offer(words.words[i]);
    if (offer.empty()) continue;
    out += fmt::format("complete -c {0} -n '__{0}_at {1} {2}'{3}\n", program,
                       words.words[i].repeats ? "-ge" : "-eq", i, offer);
  }
  for (const Option& option : words.options) out += fish_option(program, option);
  return out;
}

}  // namespace urma::apps
