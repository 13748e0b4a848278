// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace urma::engine {

class Engine;

enum class ObjectKind : uint8_t { jetty = 1, jfs, jfr, jfc, segment, group };

// A Jetty, a completion queue or a segment of a device, for statistics. A member that does not
// belong to its kind is 0.
struct ObjectView {
  static constexpr uint32_t none = UINT32_MAX;

  ObjectKind kind = ObjectKind::jetty;
  uint8_t state = 0;             // of a Jetty: jetty::JettyState
  uint8_t weight = 0;            // of a Jetty
  uint8_t how = 0;               // the service mode of a Jetty, the rights of a segment
  uint32_t id = 0;               // of a Jetty, a JFR, a group or a JFC; the TokenID of a segment
  uint32_t sends = 0;            // how many works may be outstanding
  uint32_t receives = 0;         // how many receives may be posted; the depth of a JFC; the
                                 // members of a group
  uint32_t jfc = 0;              // where works complete; those of a JFR: where arrivals do
  uint32_t receives_jfc = none;  // where arrivals of a Jetty complete
  uint32_t jfr = none;           // whose receives a Jetty uses, if they are not its own
  uint32_t outstanding = 0;      // works
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint8_t urgent = 0;  // of a Jetty: 1 if its works leave before those of others
  std::array<uint8_t, 7> unused{};

  friend bool operator==(const ObjectView&, const ObjectView&) = default;
};

// The objects of a device: the first ones of each kind, and how many more there are.
struct ObjectViews {
  static constexpr uint32_t most_jetties = 48;  // with JFSs, JFRs and groups
  static constexpr uint32_t most_jfcs = 16;
  static constexpr uint32_t most_segments = 32;
  static constexpr uint32_t most = most_jetties + most_jfcs + most_segments;

  std::array<ObjectView, most> views;
  uint32_t count = 0;
  uint32_t more_jetties = 0;
  uint32_t more_segments = 0;
  bool more_jfcs = false;

  std::span<const ObjectView> shown() const { return std::span(views).first(count); }
};

// Fills `out`, whatever it contains. Takes bounded time, also if there are a million objects;
// neither allocates nor locks. Called by the thread that runs the engine.
[[gnu::cold]] void view_objects(Engine& engine, ObjectViews& out);

}  // namespace urma::engine
