// SPDX-License-Identifier: Apache-2.0
// peer DEVICE serve NAME [BYTES] publishes a segment and a Jetty, and receives all that comes
// peer DEVICE write NAME TARGET OFFSET  publishes, too, and writes numbers into the segment TARGET,
//                                from byte OFFSET on (numbered_writes.h)
//
// peer DEVICE pause NAME BYTES   publishes a segment of this size, and makes no further call
//
// peer DEVICE fork NAME          as serve, with a child of fork that does nothing for a minute
//
// peer DEVICE copy TARGET REPORT writes to the segment TARGET and reads it, with large works; when
//                                a work is refused, continues with the segment of that name
//                                next (REPORT: a file for the results)
//
// peer DEVICE churn TARGET CHURN writes into memory of TARGET's owner, where the file CHURN says
//
// Prints "ready" when it is (with fork: the process id of its child), and never ends by itself.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/processes/churn.h"
#include "tests/processes/copies.h"
#include "tests/processes/numbered_writes.h"
#include "urma/urma.hpp"

using namespace std::chrono_literals;

namespace {

constexpr uint32_t receives = 64;

void serve(urma::Jetty& jetty, std::vector<std::vector<std::byte>>& buffers) {
  for (const urma::Completion& arrival : jetty.wait(100ms)) {
    if (arrival.operation == urma::Operation::receive && !arrival.with_immediate) {
      if (!jetty.receive(buffers[arrival.tag], arrival.tag)) std::abort();
    }
  }
}

void write_for_ever(urma::Jetty& jetty, const urma::Imported& target, size_t offset) {
  urma::test::NumberedWrites writes(jetty, target, offset);
  for (;;) {
    writes.post();
    writes.note(jetty.wait(1s));
  }
}

// This thread makes no call, so the library gets no help from it.
void sit_in_pause(urma::Device& device, const char* name, size_t bytes) {
  urma::Segment segment = device.allocate(bytes).value();
  device.publish(name, segment).value();
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

void copy_for_ever(urma::Device& device, const char* target, const char* path) {
  using urma::test::Report;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void* const at = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) std::abort();
  Report& report = *static_cast<Report*>(at);
  urma::Jetty jetty = device.jetty({.berths = urma::test::stripes.size()}).value();
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    urma::test::Copies copies(jetty, device.import(target, 60s).value().segment, report);
    while (copies.turn(1s)) {
    }
    ++report.over;
  }
}

void churn_for_ever(urma::Device& device, const char* target, const char* path) {
  using urma::test::Churn;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void* const at = mmap(nullptr, sizeof(Churn), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) std::abort();
  Churn& churn = *static_cast<Churn*>(at);
  urma::Jetty jetty = device.jetty({.berths = 4}).value();
  urma::RemoteSegment segment = device.import(target, 10s).value().segment;
  const std::vector<std::byte> data(256 << 10, std::byte{0x77});
  std::puts("ready");
  std::fflush(stdout);
  for (uint64_t number = 0;;) {
    const uint64_t before = churn.number.load(std::memory_order_acquire);
    if (before % 2 == 0 && before != number) {
      segment.address = churn.address;
      segment.bytes = churn.bytes;
      segment.token_id = urma::TokenId(churn.token_id.load());
      segment.token = urma::TokenValue(churn.token.load());
      if (churn.number.load() != before) continue;
      number = before;
      churn.seen = number;
    }
    if (number == 0) continue;
    for (const size_t bytes : {size_t{8}, size_t{4096}, segment.bytes, size_t{64 << 10}}) {
      if (jetty.post(urma::write(std::span(data).first(bytes), segment)) != 1) std::abort();
    }
    while (jetty.vacant_berths() < 4) {
      for (const urma::Completion& done : jetty.wait(1s)) {
        ++churn.ended[static_cast<size_t>(done.status)];
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  urma::Device device = urma::open(arguments[1]).value();
  if (std::strcmp(arguments[2], "pause") == 0) {
    sit_in_pause(device, arguments[3], std::strtoull(arguments[4], nullptr, 10));
  }
  if (std::strcmp(arguments[2], "copy") == 0) {
    copy_for_ever(device, arguments[3], arguments[4]);
  }
  if (std::strcmp(arguments[2], "churn") == 0) {
    churn_for_ever(device, arguments[3], arguments[4]);
  }
  const bool writes = std::strcmp(arguments[2], "write") == 0;
  if (writes && count < 6) {
    std::fputs("peer: write needs NAME TARGET OFFSET\n", stderr);
    return 2;
  }
  const bool sized = std::strcmp(arguments[2], "serve") == 0 && count > 4;
  const size_t bytes = sized ? std::strtoull(arguments[4], nullptr, 10) : 1 << 20;
  urma::Segment segment = device.allocate(bytes).value();
  urma::Jetty jetty = device.jetty({.berths = 15, .receives = receives}).value();
  std::vector<std::vector<std::byte>> buffers(receives, std::vector<std::byte>(4096));
  for (uint64_t tag = 0; tag < receives; ++tag) {
    if (!jetty.receive(buffers[tag], tag)) std::abort();
  }
  device.publish(arguments[3], segment, jetty).value();
  const bool forks = std::strcmp(arguments[2], "fork") == 0;
  // With fork it is the child that prints: once it runs, it has closed the files of its parent.
  const pid_t forked = forks ? fork() : -1;
  if (forks && forked < 0) std::abort();
  const bool child = forked == 0;
  if (child || !forks) {
    std::puts(child ? std::to_string(getpid()).c_str() : "ready");
    std::fflush(stdout);
  }
  if (child) _exit(static_cast<int>(sleep(60)));
  if (writes) {
    write_for_ever(jetty, device.import(arguments[4], 10s).value(),
                   std::strtoull(arguments[5], nullptr, 10));
  }
  for (;;) serve(jetty, buffers);
}
