// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "drivers/port_facts.h"

namespace urma::drivers::verbs {

// The entry of a port's table of GIDs that is to be the device's address: the one with this number,
// or with this address, or else the best one.
struct GidWish {
  std::optional<uint32_t> index = {};
  Eid address{};  // all zeros: any
};

// Whether data goes over reliable queue pairs, which access the memory at both ends.
enum class Reliable : uint8_t { automatic, never, always };

// A device string of this driver, taken apart. It does not know whether the adapter can do this.
struct Settings {
  std::string adapter;   // as `ibv_devices` lists it; empty: the first one with an active port
  uint8_t port = 1;      // of the adapter
  GidWish gid;           // the address on that port
  uint16_t service = 0;  // 0: 4792, or if that is taken any free one
  Reliable reliable = Reliable::automatic;
  bool gather = true;        // send from registered memory, without a copy
  SettingList options = {};  // the options as they were read, for PortFacts::settings
};

}  // namespace urma::drivers::verbs
