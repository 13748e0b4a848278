#pragma once

#include "tests/verbs/fabric.h"

namespace urma::test {

// The only adapter, which is called soft0, for as long as this lives.
struct SoftAdapter {
  explicit SoftAdapter(const fabric::AdapterFacts& facts = {.addresses = {ipv4(10, 9, 0, 1)}}) {
    fabric::clear();
    fabric::plug_in(facts);
  }
  SoftAdapter(const SoftAdapter&) = delete;
  ~SoftAdapter() { fabric::clear(); }
};

}  // namespace urma::test
