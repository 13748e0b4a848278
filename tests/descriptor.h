// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "urma/urma.hpp"

namespace urma::test {

// Returns one descriptor of both.
inline std::string descriptor_of(const Segment& segment, const Jetty& jetty) {
  Descriptor both = parse_descriptor(segment.descriptor()).value();
  both.jetty = parse_descriptor(jetty.descriptor()).value().jetty;
  return to_string(both);
}

}  // namespace urma::test
