// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/common/command_words.h"

namespace urma::apps {

// Scripts by which shells complete the words of a program. Each has all that it needs, so a user
// may also load it by hand.
std::string bash_script(const CommandWords& words);
std::string zsh_script(const CommandWords& words);
std::string fish_script(const CommandWords& words);

}  // namespace urma::apps
