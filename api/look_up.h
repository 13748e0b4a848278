#pragma once

#include <string>

#include "api/location.h"
#include "engine/runner.h"
#include "urma/urma.hpp"

namespace urma {

// Returns the descriptor line that is published at the location: searches this user's directory and
// asks the network, in turn, for at most `options.limit`. `device`: the device string by which
// processes of this host reach this device.
Result<std::string> look_up(engine::Runner& runner, const std::string& device,
                            const Location& where, const ImportOptions& options);

}  // namespace urma
