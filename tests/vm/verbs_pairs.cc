// SPDX-License-Identifier: Apache-2.0
#include "tests/drivers/conformance_pairs.h"

namespace urma::test {

// Two devices of one adapter. An emulated machine has it.
void for_each_pair(const std::function<void(const std::string&, const std::string&)>& on) {
  on("verbs:rxe0?service=5001", "verbs:rxe0?service=5002");
  on("verbs:rxe0?service=5003&gather=no", "verbs:rxe0?service=5004&gather=no");
  on("verbs:rxe0?service=5005&rc=always", "verbs:rxe0?service=5006&rc=always");
}

}  // namespace urma::test
