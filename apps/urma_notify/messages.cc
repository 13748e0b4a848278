// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/messages.h"

namespace urma::apps::notify {

Wording wording() {
  return {.program = "urma_notify",
          .most_bytes = 32 * 1024,
          .shorten = "give a shorter name with --as NAME"};
}

}  // namespace urma::apps::notify
