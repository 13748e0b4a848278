// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/urma_notify/items.h"
#include "apps/urma_notify/progress.h"
#include "apps/urma_notify/sender.h"

namespace urma::apps::notify {

// How the delivery of all items to one receiver ended.
struct Verdict {
  std::string host;
  std::vector<Sent> sent;  // in the order of the items, as far as they were tried
  size_t items = 0;
  double seconds = 0;
  // Why the items after those were not tried. Exit::ok if they all were.
  Exit exit = Exit::ok;
  std::string error{};

  // Returns the first failure's exit code; Exit::ok if all arrived.
  Exit whole() const;
  size_t failures() const;
};

// Sends all items to the receiver at `host`. A file that fails does not keep the others from being
// sent. Attempts are repeated for as long as they lose a receiver that had been reached. Throws
// nothing but std::bad_alloc.
Verdict deliver(const Options& options, std::span<const Item> items, const std::string& host,
                const Voice& voice);

// Returns the line that sums a verdict up: how much arrived, or why not.
std::string summary(const Verdict& verdict);

// The object that --json prints. `docs/man/urma_notify.1` describes its fields.
nlohmann::json to_json(std::span<const Verdict> verdicts, Exit exit);

}  // namespace urma::apps::notify
