// SPDX-License-Identifier: Apache-2.0
#include "apps/capi/log.h"

#include "apps/common/output.h"
#include "umdk/include/ub/umdk/urma/urma_api.h"

namespace urma::apps::capi {
namespace {

thread_local std::string last;

// Errors are for the caller of the call; other messages have no other place than stderr.
void take(int level, char* message) {
  std::string_view text(message);
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (level <= URMA_VLOG_LEVEL_ERR) {
    last = text;
  } else {
    print_error(printable(text));
  }
}

}  // namespace

void keep_log() { urma_register_log_func(take); }

const std::string& last_error() { return last; }

Failure failed(std::string_view doing) { return {Exit::error, std::string(doing) + ": " + last}; }

}  // namespace urma::apps::capi
