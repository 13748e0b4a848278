// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/window.h"

#include <utility>

namespace urma::drivers::cxl {

Result<std::unique_ptr<Window>> Window::open(const WindowSettings& settings) {
  Opener opener(settings);
  Result<std::unique_ptr<Mapping>> mapping = opener.open();
  if (!mapping) return mapping.error();
  std::unique_ptr<HandOver> hand_over;
  if (settings.hands_over) {
    hand_over =
        std::make_unique<HandOver>((*mapping)->words().parts().granules, opener.others_entitled());
  }
  return std::unique_ptr<Window>(new Window(std::move(*mapping), std::move(hand_over)));
}

Window::Window(std::unique_ptr<Mapping> mapping, std::unique_ptr<HandOver> hand_over)
    : mapping_(std::move(mapping)),
      hand_over_(std::move(hand_over)),
      slots_(*mapping_, hand_over_.get()),
      rings_(mapping_->file(), mapping_->words(), slots_),
      segments_(*mapping_, slots_, hand_over_.get()),
      holder_(*mapping_, slots_, segments_.handed_over()) {}

Result<uint32_t> Window::join(const std::optional<WindowSettings::First>& first) {
  Result<uint32_t> slot = slots_.join(first);
  if (slot && handed_over() != nullptr) handed_over()->watch();
  return slot;
}

}  // namespace urma::drivers::cxl
