// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/resource_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "apps/capi/eid.h"
#include "apps/common/failure.h"
#include "umdk/include/ub/umdk/urma/urma_types_str.h"
#include "urma/core/endpoint.h"

namespace urma::apps::admin {
namespace {

using Devices = std::vector<const Opened*>;

template <class Value>
std::string row(std::string_view what, const Value& value) {
  return fmt::format("{:<20}: {}\n", what, value);
}

// A kind of objects that have numbers.
struct Kind {
  Resource resource;
  std::string_view word;   // of the command
  std::string_view title;  // above one object
  std::string_view rule;   // above the list
  int width = 20;          // of the name of the count
};
constexpr Kind jfc_kind{Resource::jfc, "jfc", "RES_JFC", "----------JFC----------"};
constexpr Kind jfs_kind{Resource::jfs, "jfs", "RES_JFS", "----------JFS----------"};
constexpr Kind jfr_kind{Resource::jfr, "jfr", "RES_JFR", "----------JFR----------"};
constexpr Kind jetty_kind{Resource::jetty, "jetty", "RES_JETTY", "---------JETTY---------", 22};
constexpr Kind group_kind{Resource::jetty_group, "jetty_group", "RES_JETTY_GRP",
                          "-------JETTY_GRP-------", 22};

std::string title(std::string_view of) { return fmt::format("**********{}**********\n", of); }

[[noreturn]] void not_found(std::string_view word, uint64_t id, const std::string& device) {
  throw Failure(Exit::error, fmt::format("no process shows the {} {} on {}. Fix: urma_admin show "
                                         "dev {} {} lists those that are there",
                                         word, id, device, device, word));
}

// ---- Jetties, JFSs, JFRs and JFCs

uint32_t state_of(const ObservedJetty& jetty) {
  if (jetty.state == "ready") return URMA_JETTY_STATE_READY;
  if (jetty.state == "suspended") return URMA_JETTY_STATE_SUSPENDED;
  return jetty.state == "error" ? URMA_JETTY_STATE_ERROR : URMA_JETTY_STATE_RESET;
}

std::string state_line(uint32_t state, const char* name) {
  return row("state", fmt::format("{} [{}]", state, name));
}

std::string number(const std::optional<uint32_t>& value) {
  return value ? std::to_string(*value) : "-";
}

// Returns the priority for which the C API makes a Jetty of this class and weight (umdk/sender.cc).
// Jetties of C++ programs may have larger weights, which count as the largest of the C API.
uint32_t priority_of(const ObservedJetty& jetty) {
  constexpr uint32_t in_class = URMA_MAX_PRIORITY_CNT / 2;
  const uint32_t rank = jetty.weight == 0 ? 0 : std::min(jetty.weight, in_class) - 1;
  return jetty.urgent ? in_class + rank : rank;
}

std::string to_text(const ObservedJetty& one) {
  const uint32_t state = state_of(one);
  if (one.kind == "jfr") {
    const uint32_t jfr_state = one.state == "error" ? URMA_JFR_STATE_ERROR : URMA_JFR_STATE_READY;
    return row("jfr_id", one.id) +
           state_line(jfr_state, urma_jfr_state_to_string(static_cast<uint8_t>(jfr_state))) +
           row("depth", one.receives) + row("jfc_id", one.jfc);
  }
  const std::string state_text =
      state_line(state, urma_jetty_state_to_string(static_cast<uint8_t>(state)));
  if (one.kind == "jfs") {
    return row("jfs_id", one.id) + state_text + row("depth", one.sends) +
           row("pri", priority_of(one)) + row("jfc_id", one.jfc) +
           row("outstanding", one.outstanding);
  }
  if (one.kind == "jetty_group") {
    return row("jetty_grp_id", one.id) + state_text + row("jetty_cnt", one.receives);
  }
  return row("jetty_id", one.id) + row("send_jfc_id", one.jfc) +
         row("recv_jfc_id", number(one.receives_jfc)) + row("jfr_id", number(one.jfr)) +
         row("jfs_depth", one.sends) + state_text + row("pri", priority_of(one)) +
         row("outstanding", one.outstanding);
}

std::string to_text(const ObservedJfc& one) {
  return row("jfc_id", one.number) +
         state_line(URMA_JFC_STATE_VALID, urma_jfc_state_to_string(URMA_JFC_STATE_VALID)) +
         row("depth", one.depth);
}

uint64_t id_of(const ObservedJetty& one) { return one.id; }
uint64_t id_of(const ObservedJfc& one) { return one.number; }
bool is(const ObservedJetty& one, const Kind& kind) { return one.kind == kind.word; }
bool is(const ObservedJfc&, const Kind&) { return true; }

// ---- what the pages have no room for

// Returns how many objects of the kind of this resource, or of the kinds among which it is counted,
// a process has that its page does not show, for people. Empty if the page shows all.
std::string more_of(const Opened& process, Resource resource) {
  const auto& channels = process.page.channels;
  const auto& objects = process.page.objects;
  const auto counted = [](uint64_t more, std::string_view what) {
    return more > 0 ? fmt::format("{} more {}", more, what) : std::string();
  };
  switch (resource) {
    case Resource::tp:
      return channels ? counted(channels->more, "channels") : "";
    case Resource::seg:
      return objects ? counted(objects->more_segments, "segments") : "";
    case Resource::jfc:
      return objects && objects->more_jfcs ? "more JFCs" : "";
    case Resource::rc:
    case Resource::tpreuse:
    case Resource::stats:
      return "";
    default:
      return objects ? counted(objects->more_jetties, "Jetties, JFSs, JFRs and groups") : "";
  }
}

// The end of a list.
std::string left_out_text(const Devices& opened, Resource resource) {
  std::string out;
  for (const std::string& one : left_out(opened, resource)) out += one + "\n";
  return out;
}

// Returns how many objects of a kind there are, of which the pages show `shown`. They do not say of
// which kind further Jetties, JFSs, JFRs and groups are.
std::string total(const Devices& opened, const Kind& kind, uint64_t shown) {
  uint64_t more = 0;
  bool more_jfcs = false;
  for (const Opened* const one : opened) {
    if (!one->page.objects) continue;
    more += one->page.objects->more_jetties;
    more_jfcs = more_jfcs || one->page.objects->more_jfcs;
  }
  if (kind.resource == Resource::jfc) {
    return fmt::format("{}{}", shown, more_jfcs ? " or more" : "");
  }
  return more == 0 ? std::to_string(shown) : fmt::format("{} to {}", shown, shown + more);
}

// ---- lists

// Calls function(process, object) for each object of a kind.
template <class Object, class Function>
void for_each(const Devices& opened, const Kind& kind,
              std::vector<Object> ObservedObjects::*objects, Function&& function) {
  for (const Opened* const one : opened) {
    if (!one->page.objects) continue;
    for (const Object& object : *one->page.objects.*objects) {
      if (is(object, kind)) function(*one, object);
    }
  }
}

template <class Object>
std::string objects_text(const std::string& device, const Devices& opened, const Kind& kind,
                         std::vector<Object> ObservedObjects::*objects,
                         std::optional<uint64_t> id) {
  std::string out;
  uint32_t count = 0;
  for_each(opened, kind, objects, [&](const Opened& process, const Object& object) {
    if (!id) {
      out += fmt::format("{}_id[{}]          \t:{} \tprocess {}\n", kind.word, count, id_of(object),
                         process.process());
    } else if (id_of(object) == *id) {
      out += title(kind.title) + to_text(object) + row("process", process.process());
    } else {
      return;
    }
    ++count;
  });
  if (id && count == 0) not_found(kind.word, *id, device);
  if (id) return out;
  return fmt::format("{}\n{}\n{:<{}}:{} \n{}{}", title(kind.title), kind.rule,
                     fmt::format("{}_cnt", kind.word), kind.width, total(opened, kind, count), out,
                     left_out_text(opened, kind.resource));
}

// ---- segments

std::string rights_text(Rights rights) {
  std::string out;
  for (const auto& [right, name] :
       {std::pair(Rights::read, "read"), {Rights::write, "write"}, {Rights::atomic, "atomic"}}) {
    if (has(rights, right)) out += (out.empty() ? "" : " ") + std::string(name);
  }
  return out.empty() ? "local only" : out;
}

std::string segments_text(const std::string& device, const Devices& opened,
                          std::optional<uint64_t> id) {
  std::string out;
  uint32_t count = 0;
  uint64_t more = 0;
  for (const Opened* const one : opened) {
    if (!one->page.objects) continue;
    more += one->page.objects->more_segments;
    for (const ObservedSegment& segment : one->page.objects->segments) {
      const uint64_t token_id = token_id_of(segment);
      if (id && token_id != *id) continue;
      out += fmt::format("seg_list idx: {}\n{:<20}:{} \n", count++, "eid",
                         capi::to_text(one->at.eid)) +
             row("va", segment.address) + row("len", segment.bytes) + row("token_id", token_id) +
             row("access", rights_text(segment.rights)) + row("process", one->process()) + "\n";
    }
  }
  if (id && count == 0) not_found("seg", *id, device);
  if (id) return title("RES_SEG") + row("seg_cnt", count) + out;
  return title("RES_SEG") + row("seg_cnt", count + more) + out +
         left_out_text(opened, Resource::seg);
}

// ---- channels

std::string milliseconds(const std::optional<Duration>& time) {
  if (!time) return "-";
  return fmt::format("{:.3f} ms", std::chrono::duration<double, std::milli>(*time).count());
}

std::string count_text(const std::optional<uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

// A channel over a window loses nothing, so it is a CTP; others are RTPs.
std::string channel_text(const ObservedChannel& channel, const Opened& process) {
  const auto at = parse_endpoint(channel.peer);
  const bool ctp = at && in_window(at->address);
  const Place peer = place_of(channel.peer);
  const Place local = channel.from.empty() ? process.at : place_of(channel.from);
  const auto field = [](std::string_view what, const auto& value) {
    return fmt::format("{:<14}: {}\n", what, value);
  };
  return field("local_eid", capi::to_text(local.eid)) + field("peer_eid", capi::to_text(peer.eid)) +
         field("local_uasid", local.uasid) + field("peer_uasid", peer.uasid) +
         field("tp_type", fmt::format("{} [{}]", ctp ? 1 : 0, ctp ? "CTP" : "RTP")) +
         field("path", channel.path) + field("status", channel.state) +
         field("congestion", channel.congestion) + field("rtt", milliseconds(channel.rtt)) +
         field("tx_pkt", count_text(channel.sent)) +
         field("retransmitted", count_text(channel.retransmitted)) +
         field("process", process.process());
}

std::string channels_text(const std::string& device, const Devices& opened,
                          std::optional<uint64_t> id) {
  std::string out = id ? "" : fmt::format("{:<14}: {}\n", "dev_name", device);
  uint32_t count = 0;
  for (const Opened* const one : opened) {
    if (!one->page.channels) continue;
    for (const ObservedChannel& channel : one->page.channels->shown) {
      const uint32_t number = count++;
      if (id && number != *id) continue;
      out += fmt::format("{0} tpid_list[{1}] {0}\n", std::string(20, '='), number) +
             channel_text(channel, *one);
    }
  }
  if (id && *id >= count) not_found("tp", *id, device);
  if (id) return out;
  return count == 0 ? out + "No tpid_list found.\n" : out + left_out_text(opened, Resource::tp);
}

// ---- kinds that there are none of

std::string none_text(const std::string& device, Resource resource, std::optional<uint64_t> id) {
  const bool rc = resource == Resource::rc;
  if (id) not_found(rc ? "rc" : "tpreuse", *id, device);
  if (!rc) return fmt::format("{:<16}: {}\nNo tpid_reuse found.\n", "dev_name", device);
  return fmt::format("{}\n----------RC-----------\n{:<20}:0 \n", title("RES_RC"), "rc_cnt");
}

// ---- statistics

uint64_t channels_of(const Opened& one) { return one.metric("channels"); }

std::string stats_text(const std::string& device, const Devices& opened,
                       std::optional<uint64_t> id) {
  std::string out;
  for (const Opened* const one : opened) {
    if (id && one->page.pid != *id) continue;
    const uint64_t dropped = one->metric("dropped_icrc") + one->metric("dropped_malformed") +
                             one->metric("dropped_unknown_channel") + one->metric("dropped_other");
    out += title("STATS") + row("process", one->process()) +
           row("eid", capi::to_text(one->at.eid)) + row("uasid", one->at.uasid) +
           row("jetty_cnt", one->metric("jetties")) + row("seg_cnt", one->metric("segments")) +
           row("tp_cnt", channels_of(*one)) + row("tx_pkt", one->metric("frames_sent")) +
           row("rx_pkt", one->metric("frames_received")) +
           row("tx_pkt_err", one->metric("send_failures")) + row("rx_pkt_err", dropped) +
           row("acknowledged_bytes", one->metric("acknowledged_bytes")) +
           row("copied_bytes", one->metric("copied_bytes")) + row("works", one->metric("works")) +
           row("executed", one->metric("executed"));
  }
  if (id && out.empty()) not_found("stats", *id, device);
  return out.empty() ? fmt::format("No process has opened {}.\n", device) : out;
}

}  // namespace

std::string resource_text(const std::string& device, const Devices& opened, Resource resource,
                          std::optional<uint64_t> id) {
  switch (resource) {
    case Resource::jfc:
      return objects_text(device, opened, jfc_kind, &ObservedObjects::jfcs, id);
    case Resource::jfs:
      return objects_text(device, opened, jfs_kind, &ObservedObjects::jetties, id);
    case Resource::jfr:
      return objects_text(device, opened, jfr_kind, &ObservedObjects::jetties, id);
    case Resource::jetty:
      return objects_text(device, opened, jetty_kind, &ObservedObjects::jetties, id);
    case Resource::jetty_group:
      return objects_text(device, opened, group_kind, &ObservedObjects::jetties, id);
    case Resource::rc:
    case Resource::tpreuse:
      return none_text(device, resource, id);
    case Resource::seg:
      return segments_text(device, opened, id);
    case Resource::tp:
      return channels_text(device, opened, id);
    case Resource::stats:
      break;
  }
  return stats_text(device, opened, id);
}

std::vector<std::string> left_out(const Devices& opened, Resource resource) {
  std::vector<std::string> out;
  for (const Opened* const one : opened) {
    const std::string more = more_of(*one, resource);
    if (!more.empty()) out.push_back(fmt::format("process {} has {}", one->process(), more));
  }
  return out;
}

std::vector<std::string> not_shown(const Devices& opened, Resource resource) {
  switch (resource) {
    case Resource::rc:
      return {"rc: liburma has none, as bound Jetties send over the channels of tp"};
    case Resource::tpreuse:
      return {"tpreuse: liburma has none, as it makes a channel anew when it is needed (tp)"};
    case Resource::tp:
    case Resource::stats:
      return {};
    default:
      break;
  }
  std::vector<std::string> out;
  for (const Opened* const one : opened) {
    if (one->page.objects) continue;
    out.push_back(
        fmt::format("process {} has another version of the library, which shows only counts: {} "
                    "Jetties, {} segments",
                    one->process(), one->metric("jetties"), one->metric("segments")));
  }
  return out;
}

}  // namespace urma::apps::admin
