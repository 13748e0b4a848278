// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/messages.h"

#include <fmt/format.h>

namespace urma::apps::perf {

using nlohmann::json;

Wording wording() {
  return {.program = "urma_perf", .most_bytes = 16 * 1024, .shorten = "use fewer Jetties"};
}

void to_json(json& out, const SideDescription& in) {
  out = {{"segment", in.segment},
         {"jetties", in.jetties},
         {"engines", in.engines},
         {"engine_of", in.engine_of}};
}
void from_json(const json& in, SideDescription& out) {
  read_field(in, "segment", out.segment);
  read_field(in, "jetties", out.jetties);
  read_field(in, "engines", out.engines);
  read_field(in, "engine_of", out.engine_of);
}

void to_json(json& out, const Case& in) {
  out = {{"test", in.test->name},
         {"bytes", in.bytes},
         {"depth", in.depth},
         {"jetties", in.jetties},
         {"signal_every", in.signal_every},
         {"verify", in.verify},
         {"limit", in.limit},
         {"summed", in.summed},
         {"own_memory", in.own_memory},
         {"gpu", in.gpu ? static_cast<int>(*in.gpu) : -1},
         {"spread", in.spread},
         {"blocks", in.plan.blocks},
         {"source_bytes", in.plan.source_bytes},
         {"target_bytes", in.plan.target_bytes},
         {"order", in.ordering.order->name},
         {"mode", in.ordering.mode->name},
         {"fence_every", in.ordering.fence_every},
         {"atomic", in.atomic->name},
         {"seed", in.seed}};
}
template <class Named>
const Named* named(std::span<const Named> all, const json& in, const char* key,
                   const Named* otherwise) {
  std::string name(otherwise->name);
  read_optional(in, key, name);
  if (const Named* found = find_named(all, name)) return found;
  throw Failure(Exit::version_mismatch,
                fmt::format("this urma_perf does not know the {} \"{}\" that the peer asks for. "
                            "Fix: use the same urma_perf on both sides",
                            key, name));
}
void from_json(const json& in, Case& out) {
  std::string test;
  read_field(in, "test", test);
  out.test = find_test(test);
  if (out.test == nullptr) {
    throw Failure(Exit::version_mismatch,
                  fmt::format("this urma_perf does not know the test \"{}\" that the peer asks "
                              "for. Fix: use the same urma_perf on both sides",
                              test));
  }
  read_field(in, "bytes", out.bytes);
  read_field(in, "depth", out.depth);
  read_field(in, "jetties", out.jetties);
  read_optional(in, "signal_every", out.signal_every);
  read_field(in, "verify", out.verify);
  read_field(in, "limit", out.limit);
  read_field(in, "summed", out.summed);
  read_optional(in, "own_memory", out.own_memory);
  int gpu = -1;
  read_optional(in, "gpu", gpu);
  if (gpu >= 0) out.gpu = static_cast<uint32_t>(gpu);
  read_optional(in, "spread", out.spread);
  read_optional(in, "blocks", out.plan.blocks);
  read_optional(in, "source_bytes", out.plan.source_bytes);
  read_optional(in, "target_bytes", out.plan.target_bytes);
  Ordering& ordering = out.ordering;
  ordering.order = named<NamedOrder>(named_orders, in, "order", ordering.order);
  ordering.mode = named<NamedMode>(named_modes, in, "mode", ordering.mode);
  read_optional(in, "fence_every", ordering.fence_every);
  out.atomic = named<NamedAtomic>(named_atomics, in, "atomic", out.atomic);
  read_field(in, "seed", out.seed);
}

// The field "profile" is absent if that side is not profiled.
void to_json(json& out, const Report& in) {
  write_fields(out, "messages, windows, verdict, raw_bytes_per_second, waited", in.messages,
               in.windows, in.verdict, in.raw_bytes_per_second, in.waited);
  if (in.profile) out["profile"] = *in.profile;
}
void from_json(const json& in, Report& out) {
  read_fields(in, "messages, windows, verdict, raw_bytes_per_second, waited", out.messages,
              out.windows, out.verdict, out.raw_bytes_per_second, out.waited);
  if (in.contains("profile")) read_field(in, "profile", out.profile.emplace());
}

void to_json(json& out, const Verdict& in) { out = {{"wrong", in.wrong}, {"first", in.first}}; }
void from_json(const json& in, Verdict& out) {
  read_field(in, "wrong", out.wrong);
  read_field(in, "first", out.first);
}

}  // namespace urma::apps::perf
