// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "umdk/include/ub/umdk/urma/urma_provider.h"
#include "urma/urma.hpp"

namespace urma::umdk {

// How many Jetties, JFS and JFR a context can have. UMQ takes this for the bound of their numbers,
// and those are any of 20 bits.
inline constexpr uint32_t max_jetties = 1'000'000;

// Berths of a queue beyond its depth, of which the last one takes only a signalled work. A peer
// that replies answers up to 16 works later (see "Answers are delayed in a conversation" in the
// architecture), but programs take the reply for the sign that their request has completed.
inline constexpr uint32_t spare_berths = 24;

// A device of the C API: a name, and a device string for each of its EIDs. DeviceList changes
// `strings` and `eids`, and guards them.
struct Device : urma_device_t {
  static constexpr uint64_t kind = 0x6465'7669'6365;

  Device(std::string_view name_, std::vector<std::string> strings_);

  std::vector<std::string> strings;
  std::vector<std::optional<urma_eid_t>> eids;  // those that are known; as long as `strings`
  uint64_t handle = 0;
};

// The devices of this process: those that URMA_DEVICES names (NAME=DEVICE;NAME=DEVICE), or else
// cxl0 and one for each network interface that is up, with its addresses as EIDs. A device stays in
// the list as long as the process runs. Any thread calls it.
class DeviceList {
 public:
  static DeviceList& get();

  // Reads the environment and the interfaces again, and adds what is new. Throws std::bad_alloc.
  void refresh();
  std::vector<Device*> all() const;
  // Finds a device by its name, or adds a device string as a name. Returns null if there is none.
  Device* named(std::string_view name);
  // Returns the EIDs of a device. Opens it if they are not known: the errors are those of open.
  Result<std::vector<urma_eid_t>> eids(Device& device);
  // Returns the device strings. A copy, because another thread may call `refresh`.
  std::vector<std::string> strings(const Device& device) const;
  // Records the EID of a device that was opened with this string, if it still has the string.
  void note(Device& device, uint32_t index, const std::string& text, const urma_eid_t& eid);

 private:
  void add(std::string_view name, std::vector<std::string> strings);
  void add_interfaces();
  Device* known(std::string_view name) const;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// Returns what each device can do. The port is that of a window.
const urma_device_attr_t& attributes();
// Returns what this device can do. Its port has the MTU and the speed of the interface that has the
// address, as far as they are known.
urma_device_attr_t attributes_of(const Device& device);

// The table that all contexts have.
extern urma_ops_t operations;

}  // namespace urma::umdk
