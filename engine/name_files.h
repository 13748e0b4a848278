// SPDX-License-Identifier: Apache-2.0
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
  std::string device;  // the device string by which processes of this host reach it
};

// A device that looks for a name.
struct Seeker {
  Eid address;
  std::string device;  // the device string by which processes of this host reach it
};

using Publications = std::map<std::string, Publication, std::less<>>;

// Returns whether the name is 1 to 64 letters, digits, '.', '_' or '-', and does not start with
// '.'.
bool valid_name(std::string_view name);

// The names that processes of this user publish on this host. Each is a file in a directory of the
// user (mode 0700), which its publisher holds locked for as long as it runs (HeldFile). Called by
// any thread.
class NameFiles {
 public:
  // The directory is $XDG_RUNTIME_DIR/urma, else /run/user/UID/urma, else /tmp/urma-UID. It is made
  // when the first name is published.
  static NameFiles of_this_user();
  // Returns the path of the directory, and the reason for its choice.
  static Setting directory_of_this_user();

  // A publication, which ends when this object is destroyed.
  using Held = HeldFile;
  Result<Held> publish(const Endpoint& at, const std::string& name, const Publication& publication);

  using Admits = std::function<bool(const Eid& address)>;
  // Returns what a running process, in this network namespace or in the same window, publishes
  // under this name at an address that `admits` accepts and that a device at `from` can reach.
  // Errors: not_found if there is none, invalid_argument if there are several, permission_denied or
  // io_error if the directory cannot be trusted.
  Result<Publication> find(const Seeker& from, const Admits& admits, const std::string& name) const;
  // Returns everything that is published at this address. The result is empty if the directory
  // cannot be read.
  Publications all(const Eid& address) const;

 private:
  explicit NameFiles(std::string directory) : directory_(std::move(directory)) {}

  std::string directory_;
};

// Returns an identifier of this network namespace; addresses of another namespace are not valid
// here.
std::string network_namespace();

}  // namespace urma::engine
