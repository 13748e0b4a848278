// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/output.h"

#include "apps/common/output.h"
#include "apps/urma_stat/terminal.h"

namespace urma::apps::stat {

Output::Output() : terminal_(can_redraw()) {}

void Output::write(std::string_view text) const { apps::print(text); }

size_t Output::columns() const { return screen_size().ws_col; }

void Output::redraw(const std::string& text) {
  constexpr const char* clear_screen = "\x1b[2J";
  const std::string screen = screenful(text, screen_size());
  write(drawn_ ? screen : clear_screen + screen);
  drawn_ = true;
}

}  // namespace urma::apps::stat
