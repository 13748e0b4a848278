// SPDX-License-Identifier: Apache-2.0
// Writes memory of this process's GPU to a segment until it is killed.
//
// Usage: gpu_writer DEVICE SEGMENT

#include <cstdio>

#include "tests/accelerator/gpu.h"
#include "urma/urma.hpp"

int main(int count, char** words) {
  if (count != 3) return 2;
  constexpr size_t bytes = 300'000;
  constexpr uint32_t at_once = 8;
  const urma::test::GpuBytes memory(bytes);
  urma::Device device = urma::open(words[1]).value();
  const urma::Segment buffer =
      device.register_memory(memory.span(), urma::Rights::local_only).value();
  urma::Jetty jetty = device.jetty({.berths = at_once}).value();
  const urma::Work work = urma::write(memory.span(), device.import(words[2]).value().segment);
  uint32_t outstanding = 0;
  for (bool told = false;;) {
    while (outstanding < at_once) outstanding += static_cast<uint32_t>(jetty.post(work));
    for (const urma::Completion& one : jetty.wait(std::chrono::seconds(60))) {
      if (!one.ok()) return 3;
      --outstanding;
    }
    if (told || device.stats().value().carried == 0) continue;
    told = true;
    std::puts("carried");
    std::fflush(stdout);
  }
}
