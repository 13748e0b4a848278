// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "engine/name_files.h"
#include "urma/core/endpoint.h"
#include "urma/core/time.h"

namespace urma::engine {

// The names for which a device answers: those that it publishes itself, and perhaps those of its
// neighbours, which are the other processes of this user at its address. Knows nothing of messages.
// Called by the thread that runs the pass.
class PublishedNames {
 public:
  // The directory of names is read at most this often, however many processes ask: reading it takes
  // several system calls for each name, within a pass.
  static constexpr Duration look_again_after = std::chrono::milliseconds(10);

  struct Options {
    Eid address{};                          // of this device
    std::optional<NameFiles> neighbours{};  // set if it answers for its neighbours, too
    bool all_admitted = false;              // each asker is in this process (a simulated network)
  };
  explicit PublishedNames(Options options) : options_(std::move(options)) {}

  // Adds names of this device, by moving the entries; replaces those of the same names.
  void publish(Publications& names);
  void unpublish(std::string_view name);

  // Returns what is published under this name for a device at the address `asker`: nullptr if there
  // is nothing, or if the audience of the name does not include this device. Valid until the next
  // call.
  const Publication* find(std::string_view name, const Eid& asker, Time now);

 private:
  const Publication* find(std::string_view name, Time now);
  const Publications& neighbours(Time now);

  const Options options_;
  Publications own_;
  Publications neighbours_;  // as the directory was last read
  Time look_at_{};           // the earliest time to read it again
};

}  // namespace urma::engine
