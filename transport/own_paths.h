// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "transport/rtp/routes.h"
#include "transport/settings.h"
#include "wire/setup_message.h"

namespace urma::transport {

// The addresses of this device, each the near end of a path. It keeps the list that peers are given
// and the addresses that packets may still use, which differ while an address is being removed. It
// does not know peers. Only the thread that runs the engine calls it.
class OwnPaths {
 public:
  explicit OwnPaths(const Settings& settings)
      : may_change_(settings.paths.count > 0),
        current_(may_change_ ? settings.paths : PathList{.count = 1, .endpoints = {settings.self}}),
        usable_(current_),
        encoded_bytes_(emit_paths(current_, encoded_)) {}

  // Returns whether the device may have several addresses, now or later.
  bool may_change() const { return may_change_; }
  // Returns the list that peers are given.
  const PathList& current() const { return current_; }
  // Returns these addresses and those about to be removed. The reference stays valid.
  const PathList& usable() const { return usable_; }
  const Endpoint& endpoint(uint8_t path) const { return usable_.endpoints[path]; }
  // Returns an address of the current list that the device can be reached at.
  const Endpoint& first() const { return current_.endpoints[current_.first()]; }
  // Returns the current list as set-up messages carry it.
  std::span<const std::byte> encoded() const { return std::span(encoded_).first(encoded_bytes_); }

  // Replaces the list. An address that is not in it stays usable until `close`.
  void lead(const PathList& paths) {
    const uint32_t number = (current_.number + 1) & PathList::number_mask;
    current_ = paths;
    current_.number = number;
    for (uint8_t i = 0; i < most_paths; ++i) {
      if (!current_.there(i)) continue;
      if (!(usable_.endpoints[i] == current_.endpoints[i])) totals_[i] = {};
      usable_.set(i, current_.endpoints[i]);
    }
    encoded_bytes_ = emit_paths(current_, encoded_);
  }
  // From now on no packet is sent from this address.
  void close(uint8_t path) { usable_.endpoints[path] = {}; }

  // Returns the sums over all peers, by path; zeros if there is only one path.
  AllPathTotals& totals() { return totals_; }
  const AllPathTotals& totals() const { return totals_; }

 private:
  const bool may_change_;
  PathList current_;
  PathList usable_;
  AllPathTotals totals_{};
  std::array<std::byte, SetupMessage::most_paths_size> encoded_{};
  size_t encoded_bytes_ = 0;
};

}  // namespace urma::transport
