// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/log.h"

namespace urma::engine {

// Which lines of the log a user chose, as a text: LEVEL for all layers, LAYER=LEVEL for one, with
// commas between them, as "warning,transport=debug". Without a level for all, that is "off".
class LogChoice {
 public:
  // Parses any text. What is wrong with it has no effect, and a sentence about it is added to
  // `wrong`.
  static LogChoice parse(std::string_view text, std::vector<std::string>& wrong);

  // The least severe level of any layer. Empty if nothing is logged.
  std::optional<LogLevel> level() const;
  // Returns whether lines of this layer and level are logged.
  bool has(std::string_view layer, LogLevel level) const;
  // The choice as a text, without what was wrong.
  std::string text() const;

 private:
  using Limit = std::optional<LogLevel>;  // empty: off

  Limit others_;
  std::array<std::optional<Limit>, log_layers.size()> own_;  // of layers with a level of their own
};

}  // namespace urma::engine
