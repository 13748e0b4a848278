// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/urma_notify/incoming.h"
#include "apps/urma_notify/messages.h"
#include "apps/urma_notify/options.h"

namespace urma::apps::notify {

// One thing that is sent: a file, or a folder, which comes after everything in it, so that its time
// of modification stays.
struct Item {
  enum class Kind : uint8_t { file, folder, unsent };

  Kind kind = Kind::file;
  std::string path;  // here
  std::string name;  // at the receiver: folders are separated by a slash
  Attributes attributes{};
  std::shared_ptr<const File> stored{};  // standard input; null for a file that has a path
  std::string why{};                     // unsent: what failed, why, and the fix
};

// Lists what the command line names, with everything in the folders that it names. Symbolic links,
// devices and the like in these are `unsent`, and so are folders that cannot be read. Throws a
// Failure if something that the user named does not exist or has no usable name.
std::vector<Item> list_items(const Options& options);

}  // namespace urma::apps::notify
