// SPDX-License-Identifier: Apache-2.0
#include "engine/configuration.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/above_standard.h"
#include "base/failed.h"
#include "base/near_names.h"
#include "engine/held_file.h"

namespace urma::engine {
namespace {

constexpr size_t most_file_bytes = 65'536;
constexpr size_t most_line_bytes = 1024;
constexpr const char* system_file = "/etc/urma/urma.conf";
constexpr std::string_view default_device_string = "cxl:";

// A setting: its name in the file, and its variable.
struct Key {
  const char* name;
  const char* variable;
  const char* meaning;
};
constexpr Key device_key = {"device", "URMA_DEVICE",
                            "the device of open() and of tools without one"};
constexpr Key log_key = {"log", "URMA_LOG",
                         "which lines of logs are written to stderr: off, error, warning, info, "
                         "debug; also of one layer, as warning,transport=debug"};
constexpr Key congestion_key = {"congestion", "URMA_CONGESTION",
                                "the congestion control of devices whose program names none"};
constexpr Key capture_key = {"capture", "URMA_CAPTURE",
                             "the directory in which each device writes its packets to a file"};
constexpr std::array keys = {device_key, log_key, congestion_key, capture_key};
constexpr const char* file_variable = "URMA_CONFIG";
constexpr std::string_view variable_prefix = "URMA_";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// Returns the text as it may be shown: short, and with ? in place of what is not printable ASCII.
std::string shown(std::string_view text) {
  constexpr size_t most = 60;
  std::string out(text.substr(0, most));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

std::string guess(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = near_names(word.substr(0, 60), names);
  return near.empty() ? "" : "; perhaps " + near + " is meant";
}

std::vector<std::string> key_names() {
  std::vector<std::string> out;
  for (const Key& key : keys) out.emplace_back(key.name);
  return out;
}

Result<ConfiguredLine> parse_line(std::string_view text, size_t number, const std::string& where) {
  const auto wrong = [&](const auto&... why) {
    return failed(Status::invalid_argument, where, ":", number, ": ", why...);
  };
  if (text.size() > most_line_bytes) {
    return wrong("the line has more than ", most_line_bytes, " bytes").fix("shorten it");
  }
  const size_t equals = text.find('=');
  const std::string_view name = trimmed(text.substr(0, equals));
  const std::string_view value =
      equals == text.npos ? std::string_view() : trimmed(text.substr(equals + 1));
  if (name.empty() || value.empty()) {
    return wrong("\"", shown(text), "\" is not NAME = VALUE")
        .fix("write it as device = udp:, or put a # before it");
  }
  for (const char c : text) {
    if ((c >= 0 && c < ' ' && c != '\t') || c == '\x7f') {
      return wrong("the line has a control character").fix("remove it");
    }
  }
  if (value.front() == '"' || value.front() == '\'') {
    return wrong("the value is in quotes").fix("remove the quotes");
  }
  if (value.find(" #") != value.npos) {
    return wrong("a comment is behind the value").fix("put the comment into a line of its own");
  }
  for (const Key& key : keys) {
    if (name == key.name) return ConfiguredLine{std::string(name), std::string(value), number};
  }
  return wrong("\"", shown(name), "\" is not a setting", guess(name, key_names()))
      .fix("use device, log, congestion or capture, or put a # before the line");
}

bool privileged() { return getauxval(AT_SECURE) != 0; }

// The value of a variable; empty if it is not set, or set to nothing.
std::string variable(const char* name) {
  const char* const value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

// A file that may be the configuration file.
struct Candidate {
  std::string path;
  bool named = false;  // by the user, so it has to exist
};

std::vector<Candidate> possible_files() {
  if (const std::string named = variable(file_variable); !named.empty()) return {{named, true}};
  std::vector<Candidate> out;
  const std::string folder = variable("XDG_CONFIG_HOME");
  const std::string home = variable("HOME");
  if (folder.starts_with('/')) {
    out.push_back({folder + "/urma/urma.conf"});
  } else if (home.starts_with('/')) {
    out.push_back({home + "/.config/urma/urma.conf"});
  }
  out.push_back({system_file});
  return out;
}

// The configuration file. Without one, `path` is empty.
struct File {
  std::string path;
  std::vector<ConfiguredLine> lines;
  std::vector<std::string> warnings{};  // about files that come before it and cannot be read

  const ConfiguredLine* find(std::string_view name) const {
    for (const ConfiguredLine& one : lines) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }
};

Result<File> read_file(const Candidate& candidate, const OwnedDescriptor& file) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return failed(Status::io_error, candidate.path, ": ", std::strerror(errno))
          .fix("name a file of text in ", file_variable);
    }
    if (got == 0) break;
    text.append(part.data(), static_cast<size_t>(got));
    if (text.size() > most_file_bytes) {
      return failed(Status::invalid_argument, candidate.path, ": has more than ", most_file_bytes,
                    " bytes")
          .fix("name a file of text in ", file_variable);
    }
  }
  auto lines = parse_configuration(text, candidate.path);
  if (!lines) return lines.error();
  return File{candidate.path, std::move(*lines)};
}

// Returns why settings are not read from this; empty for a file, and for /dev/null.
std::string_view objection_to(const OwnedDescriptor& file) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || S_ISREG(info.st_mode)) return {};
  if (S_ISDIR(info.st_mode)) return std::strerror(EISDIR);
  if (S_ISCHR(info.st_mode)) return isatty(file.get()) != 0 ? "it is a terminal" : "";
  return "it is a pipe or another special file";
}

Result<File> find_file() {
  std::vector<std::string> warnings;
  for (const Candidate& candidate : possible_files()) {
    const OwnedDescriptor file(above_standard(
        ::open(candidate.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
    const int why = file.get() < 0 ? errno : 0;
    const std::string_view objection = why == 0 ? objection_to(file) : std::strerror(why);
    if (objection.empty()) {
      Result<File> read = read_file(candidate, file);
      if (read) read->warnings = std::move(warnings);
      return read;
    }
    if (candidate.named) {
      const Status status = why == 0                        ? Status::invalid_argument
                            : why == EACCES || why == EPERM ? Status::permission_denied
                                                            : Status::not_found;
      return failed(status, candidate.path, ": ", objection)
          .fix("make it readable, or name another file in ", file_variable,
               " (/dev/null has no settings)");
    }
    // HOME may be that of another user, whose rights this process gave up, so this is only a
    // warning.
    if (why == ENOENT || why == ENOTDIR) continue;
    warnings.push_back(candidate.path + " is not read: " + std::string(objection));
  }
  File none;
  none.warnings = std::move(warnings);
  return none;
}

Setting value_of(const Key& key, const File& file, std::string_view by_default) {
  Setting out{.name = key.name,
              .value = variable(key.variable),
              .origin = Origin::environment,
              .source = key.variable,
              .meaning = key.meaning};
  if (!out.value.empty()) return out;
  if (const ConfiguredLine* const line = file.find(key.name)) {
    out.value = line->value;
    out.origin = Origin::file;
    out.source = file.path + ":" + std::to_string(line->line);
    return out;
  }
  out.value = by_default;
  out.origin = Origin::by_default;
  out.source = std::string(key.variable) + " sets it";
  return out;
}

// Reads the levels of the log. What is wrong with them has no effect, and the source of the setting
// says so: a program must not end because of the level of a log.
void read_log(UserSettings& settings, Setting& setting) {
  std::vector<std::string> wrong;
  settings.log = LogChoice::parse(setting.value, wrong);
  if (wrong.empty()) return;
  setting.value = settings.log.text();
  for (const std::string& why : wrong) {
    const Error warning =
        failed(Status::invalid_argument, setting.source, ": ", why, ", and has no effect")
            .fix(
                "set it to off, error, warning, info or debug, or to levels of "
                "layers, as warning,transport=debug");
    settings.log_warnings.push_back(warning.message);
  }
  for (const std::string& why : wrong) setting.source += "; " + why;
}

void write_line(std::string_view level, std::string_view text) {
  const std::string line = "liburma: " + std::string(level) + ": " + std::string(text) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Result<std::vector<ConfiguredLine>> parse_configuration(std::string_view text,
                                                        const std::string& path) {
  std::vector<ConfiguredLine> out;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    Result<ConfiguredLine> parsed = parse_line(line, number, path);
    if (!parsed) return parsed.error();
    for (const ConfiguredLine& before : out) {
      if (before.name != parsed->name) continue;
      return failed(Status::invalid_argument, path, ":", number, ": ", parsed->name,
                    " is set in line ", before.line, " already")
          .fix("remove one of the two lines");
    }
    out.push_back(std::move(*parsed));
  }
  return out;
}

// Returns those of the variables whose names are near. Their common beginning, which makes any two
// of them similar, does not count.
std::vector<std::string> near_variables(std::string_view name,
                                        const std::vector<std::string>& variables) {
  std::vector<std::string> out;
  for (const std::string& variable : variables) {
    const std::string rest = variable.substr(variable_prefix.size());
    const std::string_view word = name.substr(variable_prefix.size(), 60);
    if (!near_names(word, {rest}).empty()) out.push_back(variable);
  }
  return out;
}

// The plugin for NCCL reads these variables, and reports those that it does not know.
constexpr std::string_view nccl_prefix = "URMA_NCCL_";
// Variables that the C API of UMDK reads (docs/porting-from-umdk.md).
constexpr std::string_view c_api_variables[] = {"URMA_DEVICES", "URMA_PING", "URMA_SEGMENTS"};

std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string> known = {file_variable};
  for (const Key& key : keys) known.emplace_back(key.variable);
  std::vector<std::string> out;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view all = *environment;
    const std::string_view name = all.substr(0, all.find('='));
    if (!name.starts_with(variable_prefix) || name.starts_with("URMA_TEST_")) continue;
    if (name.starts_with(nccl_prefix)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const bool of_c_api = std::ranges::find(c_api_variables, name) != std::end(c_api_variables);
    out.push_back(
        "the variable " + shown(name) +
        (of_c_api ? " has an effect only in programs of the C API of UMDK" : " has no effect") +
        guess(name, near_variables(name, known)));
  }
  return out;
}

Result<UserSettings> read_user_settings() {
  const Result<File> file = find_file();
  if (!file) return file.error();
  UserSettings settings;
  Configuration& out = settings.configuration;
  out.settings.push_back(value_of(device_key, *file, default_device_string));
  out.settings.push_back(value_of(log_key, *file, "off"));
  read_log(settings, out.settings.back());
  out.settings.push_back(value_of(congestion_key, *file, "default"));
  out.settings.push_back(value_of(capture_key, *file, "none"));
  const bool named = !variable(file_variable).empty();
  out.settings.push_back({.name = "config",
                          .value = file->path.empty() ? "none" : file->path,
                          .origin = named ? Origin::environment : Origin::by_default,
                          .source = named ? file_variable : std::string(file_variable) + " sets it",
                          .meaning = "the configuration file"});
  if (!privileged()) out.warnings = unknown_variables(environ);
  out.warnings.insert(out.warnings.end(), file->warnings.begin(), file->warnings.end());
  return settings;
}

const Setting* UserSettings::chosen(std::string_view name) const {
  for (const Setting& one : configuration.settings) {
    if (one.name == name && one.origin != Origin::by_default) return &one;
  }
  return nullptr;
}

void configure_log(LogOptions& log, const UserSettings& settings) {
  if (log.call) return;
  static std::atomic_flag warned_of_log;
  if (!settings.log_warnings.empty() && !warned_of_log.test_and_set()) {
    for (const std::string& one : settings.log_warnings) write_line("warning", one);
  }
  const std::optional<LogLevel> level = settings.log.level();
  if (!level) return;
  log.level = *level;
  log.call = [choice = settings.log](const LogLine& line) {
    if (choice.has(line.layer, line.level)) write_line(name(line.level), line.text);
  };
  static std::atomic_flag warned;
  if (*level >= LogLevel::warning && !warned.test_and_set()) {
    for (const std::string& one : settings.configuration.warnings) write_line("warning", one);
  }
}

}  // namespace urma::engine
