// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/urma_notify/attributes.h"
#include "apps/urma_notify/incoming.h"

namespace urma::apps::notify {

// The end of a name that is a partial file, which begins with a dot.
inline constexpr std::string_view part_end = ".urma-part";

// Where a file arrives: an open folder, and the file's name in it.
struct Place {
  File folder;
  std::string leaf;
};

// Returns why the receiver does not accept this name, from another process, for a file or a folder
// in its folder: "a/b" is b in the folder a. Empty if it does. An accepted name leads nowhere else:
// no part of it is empty, "." or ".."; it has at most 32 parts, of at most 200 bytes; its first
// part does not begin with a dot, and no part is that of a partial file; and it has no character
// that a terminal would not print.
std::string_view objection_to(std::string_view name);

// Opens the folder in which `name` lies, below the folder `root`, and makes folders that are
// missing. Follows no symbolic link. Throws a Failure.
Place open_place(int root, const std::string& name);

// Makes a folder, unless it exists, and gives it these attributes. Throws a Failure.
void make_folder(int root, const std::string& name, const Attributes& attributes);

}  // namespace urma::apps::notify
