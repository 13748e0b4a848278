// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/items.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"

namespace urma::apps::notify {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_items = 1'000'000;

Item unsent(std::string path, std::string name, std::string why) {
  return {.kind = Item::Kind::unsent,
          .path = std::move(path),
          .name = std::move(name),
          .why = std::move(why)};
}

std::string not_a_file(const std::string& path, mode_t mode) {
  const std::string_view what = S_ISLNK(mode)    ? "a symbolic link"
                                : S_ISFIFO(mode) ? "a pipe"
                                : S_ISSOCK(mode) ? "a socket"
                                                 : "a device";
  return fmt::format("{}: {} is not sent. Fix: send an archive of its folder (tar)", path, what);
}

// Adds everything in a folder, and then the folder.
void add_folder(std::vector<Item>& items, const std::string& path, const std::string& name,
                const struct stat& about) {
  std::error_code error;
  std::vector<std::string> entries;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path().filename().string());
  }
  if (error) {
    items.push_back(unsent(path, name,
                           fmt::format("{}: {}. Fix: let this user read it, and send it again",
                                       path, error.message())));
    return;
  }
  std::ranges::sort(entries);
  for (const std::string& entry : entries) {
    const std::string inner = path + "/" + entry;
    struct stat its {};
    if (lstat(inner.c_str(), &its) != 0) continue;  // it was removed meanwhile
    if (items.size() >= most_items) {
      throw Failure(Exit::usage, fmt::format("{}: it has more than {} files. Fix: send an archive "
                                             "of it (tar)",
                                             path, most_items));
    }
    if (S_ISDIR(its.st_mode)) {
      add_folder(items, inner, name + "/" + entry, its);
    } else if (S_ISREG(its.st_mode)) {
      items.push_back({.path = inner, .name = name + "/" + entry});
    } else {
      items.push_back(unsent(inner, name + "/" + entry, not_a_file(inner, its.st_mode)));
    }
  }
  items.push_back(
      {.kind = Item::Kind::folder, .path = path, .name = name, .attributes = attributes_of(about)});
}

// The last part of a path; of the folder that it stands for, if it is "." or ends with a slash.
std::string name_of(const std::string& path, bool folder) {
  if (!folder) return path.substr(path.rfind('/') + 1);
  std::error_code error;
  const std::string name = fs::canonical(path, error).filename().string();
  return error ? path : name;
}

Failure no_temporary(const std::string& folder, int reason) {
  return {Exit::error,
          fmt::format("standard input is stored in {} before it is sent: {}. Fix: name a folder "
                      "with more room: TMPDIR=FOLDER urma_notify ...",
                      folder, std::strerror(reason))};
}

// Waits until standard input can be read.
void await_input() {
  pollfd events[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                     {.fd = apps::interrupt_descriptor(), .events = POLLIN, .revents = 0}};
  ::poll(events, std::size(events), -1);
  if (!apps::interrupted()) return;
  throw Failure(Exit::interrupted,
                "interrupted while standard input was read; nothing was sent. Fix: send it again");
}

// Stores standard input in a file without a name, so that it has a length, can be sent again after
// an interruption, and can be sent to several receivers.
std::shared_ptr<const File> store_input() {
  const char* const named = std::getenv("TMPDIR");
  const std::string folder = named != nullptr && *named != '\0' ? named : "/tmp";
  File file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) throw no_temporary(folder, errno);
  std::vector<char> buffer(block_bytes);
  for (;;) {
    await_input();
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) {
      throw Failure(Exit::error, fmt::format("reading standard input: {}. Fix: give it a pipe or a "
                                             "file that can be read",
                                             std::strerror(errno)));
    }
    if (got == 0) break;
    if (!apps::write_all(file.get(), {buffer.data(), static_cast<size_t>(got)})) {
      throw no_temporary(folder, errno);
    }
  }
  return std::make_shared<const File>(std::move(file));
}

Item standard_input(const Options& options) {
  if (options.name.empty()) {
    usage("standard input has no name. Fix: give the name at the receiver with --as NAME");
  }
  return {.path = "standard input", .name = options.name, .stored = store_input()};
}

void add_named(std::vector<Item>& items, const std::string& path, const Options& options) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    throw Failure(Exit::error, fmt::format("{}: {}. Fix: name a file that can be read", path,
                                           std::strerror(errno)));
  }
  const bool folder = S_ISDIR(about.st_mode);
  const std::string name = options.name.empty() ? name_of(path, folder) : options.name;
  if (folder) return add_folder(items, path, name, about);
  if (!S_ISREG(about.st_mode)) {
    throw Failure(Exit::usage, fmt::format("{}: it is neither a file nor a folder. Fix: send what "
                                           "it contains: urma_notify send - --as NAME < {}",
                                           path, quoted(path)));
  }
  items.push_back({.path = path, .name = name});
}

}  // namespace

std::vector<Item> list_items(const Options& options) {
  std::vector<Item> items;
  for (const std::string& path : options.paths) {
    if (path == "-") {
      items.push_back(standard_input(options));
    } else {
      add_named(items, path, options);
    }
  }
  return items;
}

}  // namespace urma::apps::notify
