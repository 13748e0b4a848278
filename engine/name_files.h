#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/held_file.h"
#include "urma/core/descriptor.h"
#include "urma/core/options.h"
#include "urma/core/setting.h"

namespace urma::engine {

// A published name.
struct Publication {
  std::string line;  // the descriptor
  Audience audience;
  std::string device;  // what to open in order to reach it from this host
};

using Publications = std::map<std::string, Publication, std::less<>>;

// 1 to 64 letters, digits, '.', '_' or '-', not starting with '.'.
bool valid_name(std::string_view name);

// The names that processes of this user publish on this host: one file each, in a directory of the
// user's own (mode 0700), held under a lock by its publisher for as long as it lives. A file whose
// lock is free belongs to nobody any more.
class NameFiles {
 public:
  // The directory: $XDG_RUNTIME_DIR/urma, else /run/user/UID/urma, else /tmp/urma-UID. Nothing is
  // made before something is published.
  static NameFiles of_this_user();
  // Its path, and why that one.
  static Setting directory_of_this_user();

  // Its end ends the publication.
  using Held = HeldFile;
  Result<Held> publish(const Endpoint& at, const std::string& name, const Publication& publication);

  // What is published under this name at an address that `admits` accepts and a device at `from`
  // may reach, by a living process in this network namespace or in the same window. An error if
  // there is none, or more than one.
  using Admits = std::function<bool(const Eid& address)>;
  Result<Publication> find(const Eid& from, const Admits& admits, const std::string& name) const;
  // Everything that is published at this address. None if the directory cannot be looked at.
  Publications all(const Eid& address) const;

 private:
  explicit NameFiles(std::string directory) : directory_(std::move(directory)) {}

  std::string directory_;
};

// The identity of this network namespace: addresses of another one mean nothing here.
std::string network_namespace();

}  // namespace urma::engine
