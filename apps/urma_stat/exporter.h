// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "urma/core/endpoint.h"

namespace urma::apps::stat {

// Answers requests of HTTP for /metrics, one after the other, until Ctrl-C. A client that is slow
// or sends nonsense is dropped after two seconds.
class Exporter {
 public:
  // Throws a Failure if the address cannot be used.
  explicit Exporter(const Endpoint& at);
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  ~Exporter();

  // `text` returns the answer. If it throws a Failure, the client is told why, with the code 503.
  void run(const std::function<std::string()>& text);

 private:
  int listener_;
};

}  // namespace urma::apps::stat
