// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/balance.h"
#include "urma/core/driver_info.h"
#include "urma/core/observed.h"
#include "urma/core/path.h"
#include "urma/core/setting.h"
#include "urma/core/time.h"
#include "wire/cci.h"
#include "wire/frame.h"

namespace urma::drivers {

// The address at which the medium's memory for segments is mapped in this process. Only for
// prefetching cache lines: `Ways::hold` decides whether a segment may be accessed.
struct MappedMemory {
  std::byte* base = nullptr;
  uint64_t granule_bytes = 0;
  unsigned offset_bits = 0;
  bool in_a_row = true;  // whether `at` is valid: otherwise each segment is mapped elsewhere

  // Returns the local address of the byte that has this address in the medium.
  const std::byte* at(uint64_t address) const {
    const uint64_t granule = address << 1 >> (offset_bits + 1);
    const uint64_t offset = address & ((uint64_t{1} << offset_bits) - 1);
    return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(base) +
                                              granule * granule_bytes + offset);
  }
};

// The properties of a medium, to which the layers above adapt. Constant after open.
struct PortFacts {
  // The address at which peers reach this port.
  Endpoint self;
  // The entity at that address.
  Eid eid;
  // The largest payload of a UB packet in bytes: a power of two, 1024 to 65536.
  uint32_t mtu = 1024;
  // The most bytes that wait in the port until they are received.
  uint32_t buffer_bytes = 0;
  // Whether the medium loses nothing and keeps the order between two endpoints. Such a port has
  // `ways`.
  bool lossless = false;
  // Says to people why the channels of a lossless medium have no congestion control.
  static constexpr std::string_view lossless_text =
      "the medium loses nothing, so that its channels need none";
  // The addresses of the port's paths, `self` first; empty if the port has only one path.
  std::vector<Endpoint> paths = {};
  // How traffic is spread over the paths, unless the application chooses.
  Balance balance = Balance::slice;
  // Whether packets between two endpoints often overtake one another, because of several paths or
  // injected delays.
  bool reorders = false;
  // The fields that travel with a packet outside of its bytes, and that the network may change. A
  // field that the port does not carry is neither sent nor received.
  struct Carries {
    bool ecn = false;  // TxFrame::ecn, RxFrame::ecn
    // Congestion control information: TxFrame::cci, RxFrame::cci and switch_queue.
    bool cci = false;
    // Other fields of NTH, which the port sets by itself: load balance factor, virtual lane.
    bool lbf = false;
    bool vl = false;
  };
  Carries carries = {};
  // How the switches that this port knows read the hints in the CCI of its packets. A sender must
  // not ask in another way.
  congestion::Metering metering = congestion::Metering::none;
  // Whether the descriptors are signalled only between `arm` and `disarm`, because each signal
  // costs the peer a system call. The other ends of such a port are threads that poll.
  bool arms = false;
  // The rate of the link over which packets leave; 0 if it is not known. With several paths it is
  // that of the fastest one.
  uint64_t line_bytes_per_second = 0;
  // How late an end may run: the longest time from the arrival of a packet, or the expiry of a
  // timer, until the engine runs, on a machine that has a processor for it. Each interval
  // that depends on the other end must include it: the delay of an acknowledgement, the time before
  // a probe, the least time-out, and how far a packet may be behind those of other routes.
  Duration scheduling_delay = std::chrono::milliseconds(1);
  // The mapped segments; empty if the port has no `memory`.
  MappedMemory mapped = {};
  // The file whose file system has the memory for the ways to peers. The path is empty if there is
  // none.
  struct Backing {
    std::string path;
    uint64_t bytes_for_each_peer = 0;
    std::string cure = {};  // for people: what to do when all ways that it has room for are in use
  };
  Backing backing = {};
  // The counters that only this medium has, for observers: at most PacketPort::most_metrics.
  std::vector<ObservedMetric> metrics = {};
  // A text for people: the values that the port chose, and why.
  std::string description;
  // The options of the device string and the values in effect, one by one.
  SettingList settings;
};

}  // namespace urma::drivers
