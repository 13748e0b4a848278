// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/urma_admin/options.h"
#include "apps/urma_admin/processes.h"

namespace urma::apps::admin {

// Returns the objects that processes have on a device, in UMDK's words. A line of UMDK that names
// an object is followed by the process that has it, since numbers are those of one process.
//
// Without `id` it lists the numbers of all objects of a kind, and says which processes have more
// than their pages show. Throws a Failure if there is no object with this number.
std::string resource_text(const std::string& device, const std::vector<const Opened*>& opened,
                          Resource resource, std::optional<uint64_t> id);

// Returns the sentences that say for which objects the pages have no room: "process 4711 (x) has 3
// more segments".
std::vector<std::string> left_out(const std::vector<const Opened*>& opened, Resource resource);

// Returns the sentences that say why no objects are shown: there are none of this kind, or a
// process has another version of the library.
std::vector<std::string> not_shown(const std::vector<const Opened*>& opened, Resource resource);

}  // namespace urma::apps::admin
