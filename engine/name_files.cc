// SPDX-License-Identifier: Apache-2.0
#include "engine/name_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "base/above_standard.h"
#include "base/failed.h"
#include "base/file_limit.h"

namespace urma::engine {
namespace {

constexpr size_t longest_name = 64;
constexpr size_t longest_file = 4096;

OwnDirectory own(std::string path) {
  return {.path = std::move(path),
          .what = "names",
          .cure = "remove it, or set XDG_RUNTIME_DIR to a directory of your own"};
}

bool usable_runtime_directory(const char* path) {
  struct stat info {};
  return path != nullptr && path[0] == '/' && stat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid() && access(path, W_OK) == 0;
}

// Addresses in a window are the same in all network namespaces; other addresses need the namespace.
std::string encode(const Eid& address, const Publication& publication) {
  std::string text = publication.line + "\n";
  if (!in_window(address)) text += "netns " + network_namespace() + "\n";
  text += "device " + publication.device + "\n";
  if (publication.audience.anyone) text += "anyone\n";
  for (const Eid& eid : publication.audience.eids) text += "eid " + to_string(eid) + "\n";
  return text;
}

// Returns nothing if the text is incomplete, or of another network namespace.
std::optional<Publication> decode(const Eid& address, const std::string& text) {
  Publication out;
  bool here = in_window(address);
  size_t at = 0;
  for (bool first = true; at < text.size(); first = false) {
    const size_t end = text.find('\n', at);
    if (end == text.npos) return std::nullopt;
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (first) {
      out.line = line;
    } else if (line == "netns " + network_namespace()) {
      here = true;
    } else if (line.starts_with("device ")) {
      out.device = line.substr(std::strlen("device "));
    } else if (line == "anyone") {
      out.audience.anyone = true;
    } else if (line.starts_with("eid ")) {
      const auto eid = parse_address(std::string_view(line).substr(4));
      if (!eid) return std::nullopt;
      out.audience.eids.push_back(*eid);
    } else {
      return std::nullopt;
    }
  }
  return here ? std::optional(out) : std::nullopt;
}

// Returns the suffix of a file name. Network namespaces share the directory and may have the same
// addresses, so the suffix names the namespace. No published name contains '@'.
std::string suffix_of(const Eid& address) {
  return in_window(address) ? std::string() : "@" + network_namespace();
}

// Reads the file if a process holds it. `path`: without its suffix.
std::optional<Publication> read_held(const std::string& path, const Eid& address) {
  const OwnedDescriptor file = open_to_look(path + suffix_of(address));
  if (file.get() < 0 || !held(file)) return std::nullopt;
  std::string text(longest_file, '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(got));
  return decode(address, text);
}

// The address of a publication, as text, and the publication.
using Found = std::pair<std::string, Publication>;

Error several(const std::string& name, const std::vector<Found>& found) {
  std::string where;
  for (const auto& [place, publication] : found) {
    const bool colons = place.find(':') != place.npos;
    where += " urma://" + (colons ? "[" + place + "]" : place) + "/" + name;
  }
  return failed(Status::invalid_argument, "\"", name, "\" is published at several addresses")
      .fix("choose one:", where);
}

// Returns the error if the name is published only in windows that were opened by the same device
// string as this device's window, but are other files. Opening that string again would find the
// same file as before. In the directory that holds the names, both processes see one file.
Error in_another_file(const Seeker& from, const std::string& name, const std::string& where,
                      const std::string& directory) {
  const std::string shared = directory.substr(0, directory.rfind('/'));
  return failed(Status::not_found, "\"", name, "\" is published at ", where,
                ", in a window that was opened as ", from.device,
                ", as this device's was, but that window is another file: its publisher has "
                "another /dev/shm (another container), or the file was removed and made again")
      .fix("open cxl:", shared, "/urma-window-", geteuid(), " on both sides");
}

// Returns the error if the name is published only at addresses that this device cannot reach.
Error out_of_reach(const Seeker& from, const std::string& name, const std::vector<Found>& found,
                   const std::string& directory) {
  std::string where;
  std::set<std::string> devices;
  for (const auto& [place, publication] : found) {
    where += (where.empty() ? "" : ", ") + place;
    devices.insert(publication.device);
  }
  if (in_window(from.address)) devices.erase(from.device);
  if (devices.empty()) return in_another_file(from, name, where, directory);
  std::string choice;
  for (const std::string& device : devices) choice += (choice.empty() ? "" : " or ") + device;
  return failed(Status::not_found, "\"", name, "\" is published at ", where, ", which a device at ",
                from.address, " cannot reach")
      .fix("open ", choice);
}

}  // namespace

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string network_namespace() {
  struct stat info {};
  if (stat("/proc/self/ns/net", &info) != 0) return "unknown";
  return std::to_string(info.st_ino);
}

NameFiles NameFiles::of_this_user() { return NameFiles(directory_of_this_user().value); }

Setting NameFiles::directory_of_this_user() {
  const std::string uid = std::to_string(geteuid());
  const std::string run = "/run/user/" + uid;
  Setting out{.name = "names",
              .value = "/tmp/urma-" + uid,
              .origin = Origin::by_default,
              .source = "XDG_RUNTIME_DIR is not a directory of this user, and neither is " + run,
              .meaning = "where names are published to other processes of this user"};
  if (const char* chosen = std::getenv("XDG_RUNTIME_DIR"); usable_runtime_directory(chosen)) {
    out.value = std::string(chosen) + "/urma";
    out.origin = Origin::environment;
    out.source = "XDG_RUNTIME_DIR";
  } else if (usable_runtime_directory(run.c_str())) {
    out.value = run + "/urma";
    out.origin = Origin::system;
    out.source = run;
  }
  return out;
}

Result<NameFiles::Held> NameFiles::publish(const Endpoint& at, const std::string& name,
                                           const Publication& publication) {
  const std::string names = directory_ + "/names";
  const std::string directory = names + "/" + to_string(at.address);
  for (const std::string& path : {directory_, names, directory}) {
    if (auto made = own(path).make(); !made) return made.error();
  }
  // While this process holds the directory's lock, no other process can replace the file between
  // the check whether it is held and its replacement here.
  const OwnedDescriptor turn(above_standard(
      ::open((directory + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)));
  if (turn.get() < 0) return own(directory).failure("opening " + directory + "/.lock", errno);
  if (flock(turn.get(), LOCK_EX) != 0) return own(directory).failure("locking " + directory, errno);

  const std::string suffix = suffix_of(at.address);
  const std::string path = directory + "/" + name + suffix;
  {
    const OwnedDescriptor old = open_to_look(path);
    if (old.get() >= 0 && held(old)) {
      return failed(Status::address_in_use, "the name \"", name, "\" is published at ", at.address,
                    " by another process, or by this one")
          .fix("choose another name, or unpublish it there");
    }
  }
  const std::string draft = directory + "/.new-" + name + suffix;
  OwnedDescriptor file(above_standard(
      ::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)));
  if (file.get() < 0) return own(directory).failure("making " + draft, errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return own(directory).failure("locking " + draft, errno);
  const std::string text = encode(at.address, publication);
  const int refused = text.size() > longest_file    ? EMSGSIZE
                      : !file_may_have(text.size()) ? EFBIG
                                                    : 0;
  const ssize_t written = refused != 0 ? 0 : pwrite(file.get(), text.data(), text.size(), 0);
  if (written != static_cast<ssize_t>(text.size())) {
    const int why = refused != 0 ? refused : written < 0 ? errno : ENOSPC;
    unlink(draft.c_str());
    return own(directory).failure("writing " + draft, why);
  }
  if (rename(draft.c_str(), path.c_str()) != 0)
    return own(directory).failure("naming " + path, errno);
  return Held(std::move(file), path);
}

Result<Publication> NameFiles::find(const Seeker& from, const Admits& admits,
                                    const std::string& name) const {
  if (auto trusted = own(directory_).trust(); !trusted) return trusted.error();
  std::vector<Found> here;
  std::vector<Found> elsewhere;
  for (const std::string& place : entries_of(directory_ + "/names")) {
    const Result<Eid> at = parse_address(place);
    if (!at || !admits(*at)) continue;
    auto held = read_held(directory_ + "/names/" + place + "/" + name, *at);
    if (held)
      (may_reach(from.address, *at) ? here : elsewhere).emplace_back(place, std::move(*held));
  }
  if (here.size() == 1) return std::move(here.front().second);
  if (here.size() > 1) return several(name, here);
  if (!elsewhere.empty()) return out_of_reach(from, name, elsewhere, directory_);
  return error(Status::not_found, "no process of this user publishes \"" + name +
                                      "\" on this host, according to the files in " + directory_ +
                                      "; a process with another XDG_RUNTIME_DIR has its names "
                                      "elsewhere");
}

Publications NameFiles::all(const Eid& address) const {
  Publications found;
  if (!own(directory_).trust()) return found;
  const std::string place = directory_ + "/names/" + to_string(address);
  const std::string suffix = suffix_of(address);
  for (std::string& name : entries_of(place)) {
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    if (auto held = read_held(place + "/" + name, address)) found.emplace(name, std::move(*held));
  }
  return found;
}

}  // namespace urma::engine
