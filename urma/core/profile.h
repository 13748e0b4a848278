// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/export.h"
#include "urma/core/time.h"

namespace urma {

// A stage of the way of a work through a device. A device that was opened with
// DeviceOptions::profile measures how long each stage takes (Device::profile).
//
// The first stages are calls of the application. The others are what the device does: inside of
// these calls, in control calls, or in its service thread. So a call contains the stages that its
// thread runs meanwhile; the stages of the device do not contain one another.
enum class Stage : uint8_t {
  // Calls of the application. `all_stages` explains each.
  post,
  poll_found,
  poll_nothing,
  wait,

  // The device's own stages. `all_stages` explains each.
  copy_in_post,
  send_ahead,
  look,
  receive,
  commands,
  take,
  timers,
  send,
  settle,
  finish,
  report,
};
// The number of stages.
inline constexpr size_t stage_count = size_t{static_cast<uint8_t>(Stage::report)} + 1;
// Returns whether the stage is a call of the application.
constexpr bool is_call(Stage stage) { return stage <= Stage::wait; }

// How often a stage ran, and how long it took in total. Only waits, and copies of many megabytes,
// take longer than a millisecond by themselves; if another stage does, its thread probably had no
// processor meanwhile. So these are counted apart, too.
struct StageTime {
  uint64_t times = 0;       // how often the stage ran
  Duration total{};         // how long it took in all
  uint64_t long_times = 0;  // of `times`, those that took longer than a millisecond
  Duration long_total{};    // the part of `total` that these took
};

// The stages of a device since it was opened, in the machine's time: also if the device is
// simulated, whose own time stands still while it computes. Stages that have not ended are not
// included.
struct Profile {
  Time at{};  // when this was read
  // How long it takes to measure that a stage has ended, in nanoseconds. Each time that a stage ran
  // has added this to the stage's total.
  double cost_ns = 0;
  std::array<StageTime, stage_count> stages{};  // by Stage

  // These return the time of a stage.
  StageTime& operator[](Stage stage) { return stages[static_cast<uint8_t>(stage)]; }
  const StageTime& operator[](Stage stage) const { return stages[static_cast<uint8_t>(stage)]; }
};

// The explanation of a stage, for programs that show it. Texts live as long as the library.
struct StageInfo {
  Stage stage;               // the one that is explained
  std::string_view name;     // of the enumerator
  std::string_view meaning;  // a sentence
};
// Returns the explanations of all stages, in their order. Any thread may call it.
URMA_API std::span<const StageInfo> all_stages();

}  // namespace urma
