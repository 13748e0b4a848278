// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"
#include "transport/channel_view.h"

namespace urma::transport {

// Writes the window, and the pace of a controller that paces.
inline void view_controller(const congestion::Controller& controller, bool paces,
                            ChannelView& out) {
  out.window_bytes = controller.window_bytes();
  if (paces) out.bytes_per_second = static_cast<uint64_t>(controller.bytes_per_second());
}

}  // namespace urma::transport
