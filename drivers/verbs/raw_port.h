// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "drivers/raw_port.h"
#include "urma/core/result.h"

namespace urma::drivers::verbs {

// A queue pair for datagrams of its own, beside that of a device on the same adapter.
class RawDatagramPort : public RawPort {
 public:
  // Returns what the other end needs for `connect`: a text of printable characters.
  virtual std::string address() const = 0;
  // From now on datagrams go to this address. Errors: invalid_argument, no_resources.
  virtual Result<void> connect(std::string_view address) = 0;
};

// Opens one on the adapter that this device string names. Errors: those of urma::open.
Result<std::unique_ptr<RawDatagramPort>> open_raw_port(std::string_view device);

}  // namespace urma::drivers::verbs
