// SPDX-License-Identifier: Apache-2.0
#include "engine/log_choice.h"

#include <algorithm>

#include "base/near_names.h"

namespace urma::engine {
namespace {

struct LevelWord {
  std::string_view word;
  std::optional<LogLevel> level;
};
constexpr LevelWord level_words[] = {{"off", std::nullopt},          {"error", LogLevel::error},
                                     {"warning", LogLevel::warning}, {"warn", LogLevel::warning},
                                     {"info", LogLevel::info},       {"debug", LogLevel::debug}};

const LevelWord* find_level(std::string_view word) {
  const auto* const found = std::ranges::find(level_words, word, &LevelWord::word);
  return found == std::end(level_words) ? nullptr : found;
}

// Returns the index of the layer with this name, or log_layers.size() if no layer has it.
size_t find_layer(std::string_view word) {
  if (word == "tp") word = "transport";
  const auto* const found = std::ranges::find(log_layers, word);
  return static_cast<size_t>(found - log_layers.begin());
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string about(std::string_view word, std::string_view what, std::vector<std::string> names) {
  std::string shown(word.substr(0, 60));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  std::string out = "\"" + shown + "\" is not a " + std::string(what) + " of the log";
  const std::string near = near_names(shown, names);
  if (!near.empty()) out += " (perhaps " + near + " is meant)";
  return out;
}

std::string wrong_level(std::string_view word) {
  std::vector<std::string> names;
  for (const LevelWord& one : level_words) names.emplace_back(one.word);
  return about(word, "level", std::move(names));
}

std::string level_text(const std::optional<LogLevel>& limit) {
  return limit ? std::string(name(*limit)) : "off";
}

}  // namespace

LogChoice LogChoice::parse(std::string_view text, std::vector<std::string>& wrong) {
  LogChoice out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string_view word =
        equals == item.npos ? item : without_blanks(item.substr(equals + 1));
    const LevelWord* const level = find_level(word);
    if (level == nullptr) {
      wrong.push_back(wrong_level(word));
      continue;
    }
    if (equals == item.npos) {
      out.others_ = level->level;
      continue;
    }
    const std::string_view layer = without_blanks(item.substr(0, equals));
    const size_t index = find_layer(layer);
    if (index == out.own_.size()) {
      wrong.push_back(about(layer, "layer", {log_layers.begin(), log_layers.end()}));
    } else {
      out.own_[index] = level->level;
    }
  }
  return out;
}

std::optional<LogLevel> LogChoice::level() const {
  Limit most = others_;
  for (const std::optional<Limit>& one : own_) {
    if (one && *one && (!most || **one > *most)) most = *one;
  }
  return most;
}

bool LogChoice::has(std::string_view layer, LogLevel level) const {
  const size_t index = find_layer(layer);
  const Limit limit = index < own_.size() && own_[index] ? *own_[index] : others_;
  return limit && level <= *limit;
}

std::string LogChoice::text() const {
  std::string out = level_text(others_);
  for (size_t i = 0; i < own_.size(); ++i) {
    if (own_[i]) out += "," + std::string(log_layers[i]) + "=" + level_text(*own_[i]);
  }
  return out;
}

}  // namespace urma::engine
