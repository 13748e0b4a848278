// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/ioctl.h>

#include <string>
#include <string_view>

namespace urma::apps::stat {

// Returns whether stdout is a terminal that understands escape sequences.
bool can_redraw();
// Returns the size of that terminal; 24 by 80 if it does not say.
winsize screen_size();
// Returns what shows the text from the first row on, in place of what was there. Lines are cut at
// the width of the screen. If the text does not fit, the last row says so.
std::string screenful(std::string_view text, const winsize& size);

}  // namespace urma::apps::stat
