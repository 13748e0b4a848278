// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/cxl/holder.h"
#include "drivers/cxl/mapping.h"
#include "drivers/cxl/opener.h"
#include "drivers/cxl/rings.h"
#include "drivers/cxl/segments.h"
#include "drivers/cxl/slots.h"

namespace urma::drivers::cxl {

// An open window: owns the parts that read and change it, and does nothing itself. `rings`, `slots`
// and `segments` are the control path and take the window's lock; `holder`, and reads of the
// mapping's words, are the data path. Only the thread that runs the engine calls them, except where
// a part says otherwise.
class Window {
 public:
  static Result<std::unique_ptr<Window>> open(const WindowSettings& settings);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Mapping& mapping() { return *mapping_; }
  const Mapping& mapping() const { return *mapping_; }
  // Null where segments lie in the window.
  const HandOver* hand_over() const { return hand_over_.get(); }
  Slots& slots() { return slots_; }
  Rings& rings() { return rings_; }
  Segments& segments() { return segments_; }
  Holder& holder() { return holder_; }
  HandedOver* handed_over() { return segments_.handed_over(); }

  // Takes a slot. `first`: as WindowSettings. The slot must be left before the window is destroyed,
  // unless the window was abandoned.
  Result<uint32_t> join(const std::optional<WindowSettings::First>& first = {});

 private:
  Window(std::unique_ptr<Mapping> mapping, std::unique_ptr<HandOver> hand_over);

  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<HandOver> hand_over_;
  Slots slots_;
  Rings rings_;
  Segments segments_;
  Holder holder_;
};

}  // namespace urma::drivers::cxl
