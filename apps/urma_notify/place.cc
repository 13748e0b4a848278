// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "apps/common/output.h"

namespace urma::apps::notify {
namespace {

// Names of files have at most 255 bytes, and the name of a partial file is longer.
constexpr size_t longest_part = 200;
constexpr size_t most_parts = 32;
constexpr mode_t new_folder = 0777;  // less what the receiver's umask takes away

// Removes the first part of a name and the slash behind it, and returns that part.
std::string take_part(std::string& name) {
  const size_t slash = name.find('/');
  std::string part = name.substr(0, slash);
  name.erase(0, slash == name.npos ? slash : slash + 1);
  return part;
}

std::string_view objection_to_part(std::string_view part, bool first) {
  if (part.empty() || part.size() > longest_part) return "a name has 1 to 200 bytes";
  if (part == "." || part == "..") return "it names a file in another folder";
  if (first && part.starts_with('.')) return "it begins with a dot";
  if (part.starts_with('.') && part.ends_with(part_end)) return "partial files have such names";
  return {};
}

void require_accepted(const std::string& name) {
  const std::string_view why = objection_to(name);
  if (why.empty()) return;
  const std::string shown = apps::printable(name.substr(0, longest_part));
  throw Failure(
      Exit::usage,
      fmt::format("\"{}\" is not accepted as the name of a file: {}. Fix: rename it, give "
                  "another name with --as NAME, or send an archive of its folder (tar)",
                  shown, why));
}

// Opens a folder that another one contains. Of a symbolic link, the system says that it is not a
// folder; the error says what it is.
File open_inner(const File& folder, const std::string& part, const std::string& name) {
  if (mkdirat(folder.get(), part.c_str(), new_folder) != 0 && errno != EEXIST) {
    throw file_failed(name, "making its folder", errno);
  }
  File inner(openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (inner) return inner;
  const int why = errno;
  struct stat about {};
  const bool link = fstatat(folder.get(), part.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(about.st_mode);
  throw file_failed(name, "opening its folder", link ? ELOOP : why == ENOTDIR ? EEXIST : why);
}

}  // namespace

std::string_view objection_to(std::string_view name) {
  if (name.starts_with('/')) return "it names a file in another folder";
  if (apps::printable(name) != name) {
    return "it has control characters, or characters that change the direction of text";
  }
  std::string rest(name);
  if (static_cast<size_t>(std::ranges::count(rest, '/')) >= most_parts) {
    return "it has more than 32 parts";
  }
  for (bool first = true;; first = false) {
    const bool last = rest.find('/') == rest.npos;
    const std::string_view why = objection_to_part(take_part(rest), first);
    if (!why.empty() || last) return why;
  }
}

Place open_place(int root, const std::string& name) {
  require_accepted(name);
  File folder(fcntl(root, F_DUPFD_CLOEXEC, 3));
  if (!folder) throw file_failed(name, "opening its folder", errno);
  std::string rest = name;
  while (rest.find('/') != rest.npos) folder = open_inner(folder, take_part(rest), name);
  return {.folder = std::move(folder), .leaf = rest};
}

void make_folder(int root, const std::string& name, const Attributes& attributes) {
  const Place place = open_place(root, name);
  const File folder = open_inner(place.folder, place.leaf, name);
  if (!apply(attributes, folder.get())) throw file_failed(name, "setting its mode and time", errno);
  if (fsync(folder.get()) != 0) throw file_failed(name, "writing it to the disk", errno);
}

}  // namespace urma::apps::notify
