// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "apps/urma_perf/layout.h"
#include "apps/urma_perf/plan.h"

namespace urma::apps::perf {
namespace {

// These return why one aspect of a case is not valid; empty if it is valid.

std::string objection_to_plan(const Case& what) {
  if (!what.test->plan) return {};
  const PlanShape& plan = what.plan;
  if (plan.blocks < 1 || plan.blocks > Plan::most_blocks || what.bytes < 1) {
    return fmt::format("{} moves 1 to {} blocks, not {}. Fix: choose --blocks 1 to {}",
                       what.test->name, Plan::most_blocks, plan.blocks, Plan::most_blocks);
  }
  if (const uint64_t needed = std::max({what.bytes, plan.source_bytes, plan.target_bytes});
      needed > most_memory_bytes) {
    return fmt::format(
        "{} blocks need {} MiB of memory on a side, more than {} MiB. Fix: give fewer --blocks, or "
        "a smaller --block",
        plan.blocks, needed >> 20, most_memory_bytes >> 20);
  }
  if (what.limit) {
    return fmt::format(
        "{} is compared with one write of as many bytes, in turns, and not with a limit. Fix: "
        "leave --limit out",
        what.test->name);
  }
  return {};
}

std::string objection_to_size(const Case& what) {
  if (what.test->plan) return {};
  const uint64_t most = what.test->sends() ? max_send_bytes : max_write_bytes;
  if (what.bytes < 1 || what.bytes > most) {
    return fmt::format("--size {}: messages of {} have 1 to {} bytes. Fix: --size from 1 to {}",
                       size_text(what.bytes), what.test->name, size_text(most), size_text(most));
  }
  if (what.test->atomics() &&
      (what.bytes > most_atomic_bytes || !std::has_single_bit(what.bytes))) {
    return fmt::format("{} changes words of 1, 2, 4 or 8 bytes, not {}. Fix: --size 8, 4, 2 or 1",
                       what.test->name, what.bytes);
  }
  return {};
}

std::string objection_to_mode(const Case& what) {
  if (!what.ordering.unreliable()) return {};
  if (!what.test->sends() || what.bytes > most_datagram_bytes) {
    return fmt::format(
        "--mode uno sends messages of one packet, not {} of {}. Fix: run send_lat or send_bw, "
        "with --size up to what the medium carries, {} at most",
        what.test->name, size_text(what.bytes), size_text(most_datagram_bytes));
  }
  if (what.ordering.order->order != Order::none || what.ordering.fence_every != 0) {
    return "--mode uno promises no order. Fix: leave --order and --fence-every out";
  }
  return {};
}

std::string objection_to_lane(const Case& what) {
  if (!what.test->lane) return {};
  const bool as_works =
      what.depth != 1 || what.signal_every != 1 || what.ordering.fence_every != 0 ||
      what.ordering.order != &named_orders.front() || what.ordering.mode != &named_modes.front();
  if (as_works) {
    return fmt::format(
        "{} posts no works, which alone have a depth, completions, fences and an order. Fix: leave "
        "--depth, --signal-every, --fence-every, --order and --mode out, or run write_bw, read_bw "
        "or atomic_bw",
        what.test->name);
  }
  if (what.jetties > max_lanes) {
    return fmt::format(
        "{} uses a lane for each thread, and a device has {} lanes, not {}. Fix: choose --threads "
        "1 to {}",
        what.test->name, max_lanes, what.jetties, max_lanes);
  }
  return {};
}

std::string objection_to_depth(const Case& what) {
  if (what.depth < 1 || what.depth > most_depth) {
    return fmt::format("a depth of {} is not within 1 to {}. Fix: choose --depth 1 to {}",
                       what.depth, most_depth, most_depth);
  }
  if (!what.test->bandwidth() && !what.test->plan && what.depth != 1) {
    return fmt::format(
        "{} has one work outstanding by definition. Fix: leave --depth out, or "
        "run a _bw test",
        what.test->name);
  }
  if (what.test->plan && what.jetties != 1) {
    return fmt::format("{} posts to one Jetty, not to {}. Fix: leave --jetties and --threads out",
                       what.test->name, what.jetties);
  }
  if (what.jetties < 1 || what.jetties > most_jetties) {
    return fmt::format("{} Jetties are not within 1 to {}. Fix: choose --jetties 1 to {}",
                       what.jetties, most_jetties, most_jetties);
  }
  return {};
}

std::string objection_to_signals(const Case& what) {
  if (what.test->ping_pong()) {
    if (what.signal_every < 1 || what.signal_every > most_unsignalled) {
      return fmt::format(
          "{} signals one of at most {} messages, not one of {}. Fix: choose another "
          "--signal-every",
          what.test->name, most_unsignalled, what.signal_every);
    }
  } else if (!what.test->bandwidth() && what.signal_every != 1) {
    return fmt::format(
        "{} waits for each work's completion. Fix: leave --signal-every out, or run "
        "a _bw test",
        what.test->name);
  } else if (what.signal_every < 1 || what.depth % what.signal_every != 0) {
    return fmt::format(
        "--depth {} is not a multiple of --signal-every {}. Fix: let --depth be a multiple of "
        "--signal-every",
        what.depth, what.signal_every);
  }
  return {};
}

std::string objection_to_fences(const Case& what) {
  if (what.ordering.fence_every != 0 && !what.test->bandwidth()) {
    return fmt::format(
        "{} has one work outstanding, which has nothing to wait for. Fix: leave --fence-every out, "
        "or run a _bw test",
        what.test->name);
  }
  return {};
}

std::string objection_to_limit(const Case& what) {
  if (!what.summed) return {};
  if (!what.limit) return "--summed changes the limit. Fix: give --limit, too";
  if (!what.test->bandwidth()) {
    return fmt::format(
        "--summed: the limit of {} is not trains of datagrams. Fix: leave --summed out, or run a "
        "_bw test",
        what.test->name);
  }
  if (what.bytes < least_train_bytes) {
    return fmt::format(
        "--summed: messages of {} bytes are not sent in trains. Fix: leave --summed out, or choose "
        "--size {} or more",
        what.bytes, size_text(least_train_bytes));
  }
  return {};
}

std::string objection_to_memory(const Case& what) {
  if (what.spread != 0 && !what.test->reads()) {
    return fmt::format(
        "{} reads nothing that could be spread. Fix: leave --spread out, or run a read test",
        what.test->name);
  }
  if (what.gpu && what.test->atomics()) {
    return fmt::format(
        "--memory: processors execute no atomics on memory of a GPU. Fix: leave --memory out, or "
        "measure another test than {}",
        what.test->name);
  }
  if (what.gpu && what.limit) {
    return "--memory: --limit measures memory of the host. Fix: leave --limit out, and compare "
           "with the copies of docs/gpu.md";
  }
  if (what.spread > most_memory_bytes) {
    return fmt::format("--spread {} exceeds the limit of {}. Fix: --spread {} or less",
                       size_text(what.spread), size_text(most_memory_bytes),
                       size_text(most_memory_bytes));
  }
  if (what.test->plan) return {};
  if (const uint64_t needed = Layout(what).bytes(); needed > most_memory_bytes) {
    return fmt::format(
        "{} Jetties with {} messages of {} need {} MiB of memory on each side, more "
        "than {} MiB. Fix: lower --depth, --jetties, --size or --spread",
        what.jetties, what.depth, size_text(what.bytes), needed >> 20, most_memory_bytes >> 20);
  }
  return {};
}

}  // namespace

uint32_t default_depth(const Test& test, uint64_t bytes) {
  if (!test.bandwidth()) return 1;
  constexpr uint64_t on_the_way = 4 << 20;
  const uint64_t least = bytes <= 16 << 20 ? 4 : 1;
  return static_cast<uint32_t>(std::clamp<uint64_t>(on_the_way / bytes, least, 128));
}

uint32_t calls_per_group(const Case& what) {
  constexpr uint64_t group_bytes = 16 * 1024;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(group_bytes / std::max<uint64_t>(what.bytes, 1), 1, 64));
}

std::string lane_without_mapping(const Test& test, std::string_view why) {
  return fmt::format(
      "{}: a lane needs memory of the other side that is mapped here, and it is not: {}. Fix: run "
      "both sides on one host over --device cxl:, without --private; if the window is full, with a "
      "smaller --size, or over a window of ten times --size (--device cxl:PATH?size=10G)",
      test.name, why);
}

std::string parameters_text(const Case& what) {
  std::string text = fmt::format("{} {}: depth {}, Jetties {}", what.test->name,
                                 size_text(what.bytes), what.depth, what.jetties);
  if (what.test->plan) text += fmt::format(", {} blocks", what.plan.blocks);
  if (what.signal_every > 1) text += fmt::format(", one completion for {}", what.signal_every);
  if (what.ordering.order != &named_orders.front()) {
    text += fmt::format(", order {}", what.ordering.order->name);
  }
  if (what.ordering.mode != &named_modes.front()) {
    text += fmt::format(", mode {}", what.ordering.mode->name);
  }
  if (!what.verify) text += ", bytes not checked";
  return text;
}

std::string objection(const Case& what) {
  for (const auto objection_to : {objection_to_plan, objection_to_size, objection_to_lane,
                                  objection_to_mode, objection_to_depth, objection_to_signals,
                                  objection_to_fences, objection_to_limit, objection_to_memory}) {
    if (std::string why = objection_to(what); !why.empty()) return why;
  }
  return {};
}

}  // namespace urma::apps::perf
