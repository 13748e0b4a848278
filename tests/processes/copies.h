// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "urma/urma.hpp"

namespace urma::test {

// The segment to which a process writes without end, one work at a time in each stripe: works of
// one slice and of several.
inline constexpr size_t canvas_bytes = 2 << 20;
struct Stripe {
  size_t at;
  size_t bytes;
};
inline constexpr std::array<Stripe, 4> stripes{
    {{0, 65'536}, {65'536, 200'000}, {265'536, 500'000}, {765'536, 1 << 20}}};

// A process that posts works records them here, so that the test can read the record after the
// process was stopped or killed.
struct Report {
  struct {
    std::atomic<uint64_t> begun;  // the number that is being written
    std::atomic<uint64_t> done;   // the last number whose work has completed as ok
  } stripe[stripes.size()];
  std::atomic<uint64_t> ended[32];  // works that have ended, by status
  std::atomic<uint64_t> late[32];   // of these, works that were posted after one had failed
  std::atomic<uint64_t> torn;       // reads that did not return what had been written
  std::atomic<uint64_t> over;       // segments whose works have all ended

  void begin_again() {
    for (auto& one : stripe) one.begun = one.done = 0;
    for (auto& one : ended) one = 0;
    for (auto& one : late) one = 0;
  }
  bool all_written() const {
    for (const auto& one : stripe) {
      if (one.done == 0) return false;
    }
    return true;
  }
};

// Returns whether the bytes of the segment agree with the report: each stripe contains the last
// completed number, or newer ones that were being written.
inline bool whole(std::span<const std::byte> canvas, const Report& report) {
  for (size_t i = 0; i < stripes.size(); ++i) {
    const uint64_t done = report.stripe[i].done;
    const uint64_t begun = report.stripe[i].begun;
    for (size_t at = 0; at < stripes[i].bytes; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, &canvas[stripes[i].at + at], 8);
      const bool ours = word % stripes.size() == i && word <= begun;
      if (word < done || (word > 0 && !ours)) return false;
    }
  }
  return true;
}

// Writes a number into each word of a stripe, then the next number, and reads some of them back.
// Once a work has failed, it posts one more for each stripe, and ends.
class Copies {
 public:
  Copies(Jetty& jetty, const RemoteSegment& segment, Report& report)
      : jetty_(jetty), segment_(segment), report_(report) {
    report.begin_again();
    for (size_t i = 0; i < stripes.size(); ++i) {
      states_[i].out.resize(stripes[i].bytes / 8);
      states_[i].in.resize(stripes[i].bytes / 8);
    }
  }

  // Posts all works that it can, and waits for a work to end. Returns false when all stripes have
  // ended.
  bool turn(Duration limit) {
    for (size_t i = 0; i < stripes.size(); ++i) {
      if (!states_[i].busy && !states_[i].over) post(i);
    }
    return wait(limit);
  }
  // Waits like `turn`, and posts nothing more.
  bool wait(Duration limit) {
    if (outstanding_ == 0) return false;
    for (const Completion& completion : jetty_.wait(limit)) end(completion);
    return true;
  }

 private:
  struct State {
    std::vector<uint64_t> out;
    std::vector<uint64_t> in;
    uint64_t number = 0;
    bool busy = false;
    bool reads = false;
    bool late = false;
    bool over = false;
  };

  void post(size_t i) {
    State& state = states_[i];
    state.busy = true;
    state.late = failed_;
    ++outstanding_;
    state.reads = !state.reads && state.number / stripes.size() % 4 == 3;
    if (state.reads) {
      const auto in = std::as_writable_bytes(std::span(state.in));
      must_post(read(in, segment_, stripes[i].at).tag(i));
      return;
    }
    state.number = ++count_ * stripes.size() + i;
    std::fill(state.out.begin(), state.out.end(), state.number);
    report_.stripe[i].begun = state.number;
    must_post(write(std::as_bytes(std::span(state.out)), segment_, stripes[i].at).tag(i));
  }

  // Posts the work. There is a berth for each stripe, so this cannot fail.
  void must_post(const Work& work) {
    if (jetty_.post(work) != 1) std::abort();
  }

  void end(const Completion& completion) {
    const size_t i = completion.tag;
    State& state = states_[i];
    const auto status = static_cast<size_t>(completion.status);
    ++report_.ended[status];
    if (state.late) ++report_.late[status];
    if (completion.ok() && !state.reads) report_.stripe[i].done = state.number;
    if (completion.ok() && state.reads) {
      for (const uint64_t word : state.in) {
        if (word == state.number) continue;
        ++report_.torn;
        break;
      }
    }
    failed_ = failed_ || !completion.ok();
    state.busy = false;
    state.over = state.late;
    --outstanding_;
  }

  Jetty& jetty_;
  RemoteSegment segment_;
  Report& report_;
  std::array<State, stripes.size()> states_;
  uint64_t count_ = 0;
  size_t outstanding_ = 0;
  bool failed_ = false;
};

}  // namespace urma::test
