// SPDX-License-Identifier: Apache-2.0
#include "engine/news.h"

#include <cstring>

namespace urma::engine {
namespace {

using transport::Why;

// Returns, for example, "1 work was " or "12 works were ".
std::string some(uint64_t count, std::string_view what, std::string_view one,
                 std::string_view many) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? " " : "s ") +
         std::string(count == 1 ? one : many);
}
std::string some(uint64_t count, std::string_view what) {
  return some(count, what, "was ", "were ");
}

// Returns, for example, "the peer at A" or "3 peers (the latest at A)".
std::string whom(uint64_t count, const transport::PeerNews::Of& news) {
  const std::string at = to_string(news.latest);
  return count == 1 ? "the peer at " + at
                    : std::to_string(count) + " peers (the latest at " + at + ")";
}

template <uint64_t Statistics::*counter>
uint64_t counted(const Snapshot& now) {
  return now.counts.*counter;
}
template <Why why>
uint64_t ended(const Snapshot& now) {
  return now.peers.of(why).count;
}
uint64_t made(const Snapshot& now) { return now.peers.made.count; }
uint64_t paths_lost(const Snapshot& now) { return now.peers.path_lost.count; }
uint64_t paths_back(const Snapshot& now) { return now.peers.path_back.count; }
uint64_t paths_added(const Snapshot& now) { return now.peers.path_added.count; }
uint64_t paths_removed(const Snapshot& now) { return now.peers.path_removed.count; }
uint64_t silent(const Snapshot& now) { return now.peers.silent.count; }

constexpr auto error = LogLevel::error;
constexpr auto warning = LogLevel::warning;
constexpr auto info = LogLevel::info;
constexpr auto debug = LogLevel::debug;

constexpr NewsKind kinds[] = {
    {info, "transport", "channel_made", made,
     [](const Snapshot& now, uint64_t count) {
       return "a channel was made to " + whom(count, now.peers.made);
     }},
    {warning, "transport", "channel_lost", ended<Why::silent>,
     [](const Snapshot& now, uint64_t count) {
       return "a channel was lost, to " + whom(count, now.peers.of(Why::silent)) +
              ": no packets arrive any longer. Fix: check that the peer runs and that the network "
              "carries its packets; the next work makes a new channel";
     }},
    {info, "transport", "channel_idle", ended<Why::idle>,
     [](const Snapshot& now, uint64_t count) {
       return "an unused channel was closed, to " + whom(count, now.peers.of(Why::idle)) +
              "; the next work makes a new one (DeviceOptions::idle_timeout)";
     }},
    {warning, "transport", "path_lost", paths_lost,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "is ", "are ") + "lost, the latest to " +
              to_string(now.peers.path_lost.latest) +
              "; the traffic of a lost path uses the others. Fix: check that the interface of the "
              "path is up and that its network carries packets of this size";
     }},
    {info, "transport", "path_back", paths_back,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "carries ", "carry ") + "packets again, the latest to " +
              to_string(now.peers.path_back.latest);
     }},
    {info, "transport", "path_added", paths_added,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "was ", "were ") + "added, the latest to " +
              to_string(now.peers.path_added.latest);
     }},
    {info, "transport", "path_removed", paths_removed,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "was ", "were ") + "removed, the latest to " +
              to_string(now.peers.path_removed.latest);
     }},
    {warning, "transport", "peer_silent", silent,
     [](const Snapshot& now, uint64_t count) {
       return "packets are no longer read by " + whom(count, now.peers.silent) +
              ", whose process exists: copies to its memory continue, but packets wait. Fix: let "
              "that process continue (it is stopped, or has no processor)";
     }},
    {warning, "transport", "channel_not_made", ended<Why::unreachable>,
     [](const Snapshot& now, uint64_t count) {
       return "no channel could be made to " + whom(count, now.peers.of(Why::unreachable)) +
              ", which did not answer in time. Fix: check that its process runs, and that no "
              "firewall or "
              "missing route blocks UDP";
     }},
    {warning, "transport", "version_mismatch", ended<Why::refused>,
     [](const Snapshot& now, uint64_t count) {
       return "no channel could be made to " + whom(count, now.peers.of(Why::refused)) +
              ", which uses another version of the protocol. Fix: upgrade the older of the two";
     }},
    {warning, "transport", "no_room", ended<Why::no_room>,
     [](const Snapshot& now, uint64_t count) {
       return "no channel could be made: " +
              explain_no_room(whom(count, now.peers.of(Why::no_room)), now.no_room).message;
     }},
    {warning, "transport", "peer_restarted", ended<Why::restarted>,
     [](const Snapshot& now, uint64_t count) {
       return "another process has replaced " + whom(count, now.peers.of(Why::restarted)) +
              ": segments and Jetties imported from the old process are invalid. Fix: import them "
              "again";
     }},
    {info, "transport", "peer_left", ended<Why::left>,
     [](const Snapshot& now, uint64_t count) {
       return "the device of " + whom(count, now.peers.of(Why::left)) +
              " was closed, or was forgotten here";
     }},
    {warning, "jetty", "works_unknown", counted<&Statistics::unknown>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "work") +
              "sent without an answer, and may or may not have executed. Fix: repeat only what may "
              "be executed twice; for the rest, read the targets' memory or ask their owners";
     }},
    {warning, "jetty", "works_timed_out", counted<&Statistics::timeouts>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "work") +
              "cancelled after DeviceOptions::operation_timeout without progress. Fix: check that "
              "the "
              "targets run, or raise operation_timeout";
     }},
    {warning, "jetty", "refused", counted<&Statistics::refused>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "slice") +
              "refused that peers sent: a wrong token, out of bounds, a missing right, or an "
              "unknown operation. Fix: if memory was registered again, have the peers import it "
              "again; block peers that are not yours by a firewall";
     }},
    {warning, "transport", "dropped_damaged", counted<&Statistics::dropped_icrc>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "dropped with a wrong ICRC: damaged on the way, or not of this protocol. Fix: look "
              "for a bad cable, or for another program that sends to this port";
     }},
    {warning, "transport", "dropped_malformed", counted<&Statistics::dropped_malformed>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "dropped with invalid content, or taken without a CCI that was not agreed on. Fix: "
              "use one version on all hosts; if you do already, capture such packets (pcap) to "
              "find their sender";
     }},
    {warning, "transport", "dropped_other", counted<&Statistics::dropped_other>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "dropped, because of a source that is not the peer's address, another partition, a "
              "PSN out of range, or a lack of memory. Fix: give each peer one address, without a "
              "NAT that changes it";
     }},
    {info, "transport", "setup_cookies", counted<&Statistics::setup_cookies>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "OPEN") +
              "answered with a cookie: peers have restarted or lost their channels, more than 64 "
              "came at once, or another host forges OPENs";
     }},
    {info, "transport", "setup_ignored", counted<&Statistics::setup_incarnation>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "set-up message") +
              "ignored as meant for another incarnation: this process or a peer has "
              "restarted, or "
              "another host forges messages";
     }},
    {error, "drivers", "capture_incomplete", counted<&Statistics::uncaptured>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "not written to the capture: its disk is full, or its limit is reached. Fix: make "
              "room, or capture less (snap=, limit=)";
     }},
    {error, "drivers", "send_failed", counted<&Statistics::send_failures>,
     [](const Snapshot& now, uint64_t count) {
       if (!now.send_failure_text.empty()) {
         return some(count, "frame") + "not forwarded: " + std::string(now.send_failure_text);
       }
       const std::string why =
           now.send_failure == 0 ? "" : std::string(": ") + std::strerror(now.send_failure);
       return some(count, "frame") + "refused by the system" + why +
              ". Fix: look for a filter, a missing route, or a smaller MTU on the way (mtu= in the "
              "device string)";
     }},
    {warning, "drivers", "unreachable", counted<&Statistics::unreachable>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "message", "came ", "came ") +
              "from the network, saying that a destination cannot be reached. Fix: check that "
              "the peer runs, and the route to it";
     }},
    {warning, "memseg", "not_fenced", counted<&Statistics::not_fenced>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "segment") +
              "unregistered while a stopped process was copying to or from it: that process may "
              "write once more. Fix: let that process continue, or end it, and unregister again";
     }},
    {debug, "transport", "resent", counted<&Statistics::retransmitted>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") + "sent again, because no acknowledgement showed that " +
              (count == 1 ? "it" : "they") + " arrived";
     }},
    {debug, "transport", "timed_out", counted<&Statistics::retransmission_timeouts>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "time-out", "passed ", "passed ") +
              "without any acknowledgement from a peer, after which packets were sent again";
     }},
    {debug, "transport", "duplicates", counted<&Statistics::duplicates>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet", "arrived ", "arrived ") +
              "again: the peer did not get the acknowledgement in time";
     }},
    {debug, "congestion", "marked", counted<&Statistics::packets_marked>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet", "arrived ", "arrived ") +
              "with a mark of congestion (ECN) from a switch";
     }},
    {debug, "congestion", "notified", counted<&Statistics::notifications>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "notification", "arrived ", "arrived ") +
              "of congestion at a peer (UB: CNP)";
     }},
    {debug, "jetty", "receiver_not_ready", counted<&Statistics::receiver_not_ready>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "answer", "said ", "said ") +
              "that a peer's Jetty had no vacant receive slot; the slices are sent again";
     }},
    {debug, "jetty", "not_ready", counted<&Statistics::not_ready>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "slice", "met ", "met ") +
              "a Jetty of this device without a vacant receive slot; its peer sends it again";
     }},
};

}  // namespace

std::span<const NewsKind> all_news() { return kinds; }

}  // namespace urma::engine
