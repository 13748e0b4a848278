// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"
#include "urma/core/balance.h"
#include "urma/core/ids.h"
#include "urma/core/retransmission.h"
#include "urma/core/time.h"
#include "wire/cetph.h"
#include "wire/path_list.h"
#include "wire/ways.h"

namespace urma::transport {

// The settings of the transport of one device. They are constant while the device is open.
struct Settings {
  Endpoint self;
  PathList paths{};  // addresses of this device, `self` first; empty: only `self`, for good
  Balance balance = Balance::slice;
  Eid eid;
  Incarnation life{};
  uint32_t mtu = 1024;  // largest packet payload that the driver carries
  Retransmission retransmission{};
  uint32_t tassn_window = 1024;    // W
  uint32_t reads = 64;             // reads that one peer may have outstanding at this device
  uint32_t atomic_results = 0;     // R
  uint32_t buffer_bytes = 200000;  // received and not yet read: what the driver can hold
  const congestion::ControllerKind* controller = nullptr;
  ReportForms reports{};  // of congestion: those for which the driver carries the signals
  uint64_t line_bytes_per_second = 0;  // of the driver's link; 0 if it is not known
  Duration lateness{};                 // how late an end of a channel may run
  Duration setup_timeout = std::chrono::seconds(2);
  Duration idle_timeout{};  // closes channels without traffic for so long; zero disables it
  Ways* ways = nullptr;     // of a medium that loses nothing, whose channels use CTP; else null

  // Limits.
  uint32_t peers = 1024;
  uint32_t packets = 64 * 1024;  // in flight, over all channels
  uint32_t slices = 64 * 1024;   // offered, over all channels
};

}  // namespace urma::transport
