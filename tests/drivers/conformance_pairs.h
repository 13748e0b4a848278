// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace urma::test {

// Calls `on` with the device strings of each pair of ports for which the conformance suite runs.
// Each program with the suite defines it.
void for_each_pair(const std::function<void(const std::string&, const std::string&)>& on);

}  // namespace urma::test
