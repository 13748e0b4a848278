#include "engine/news.h"

#include <cstring>

namespace urma::engine {
namespace {

using transport::Why;

// "1 work was ", "12 works were ".
std::string some(uint64_t count, std::string_view what, std::string_view one,
                 std::string_view many) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? " " : "s ") +
         std::string(count == 1 ? one : many);
}
std::string some(uint64_t count, std::string_view what) {
  return some(count, what, "was ", "were ");
}

// "the peer at A", "3 peers (the latest at A)".
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

constexpr NewsKind kinds[] = {
    {info, "channel_made", made,
     [](const Snapshot& now, uint64_t count) {
       return "there is a channel to " + whom(count, now.peers.made);
     }},
    {warning, "channel_lost", ended<Why::silent>,
     [](const Snapshot& now, uint64_t count) {
       return "the channel is lost to " + whom(count, now.peers.of(Why::silent)) +
              ", of which nothing was heard any more. Fix: see whether it runs and the network "
              "carries its packets; a "
              "new channel is made by itself";
     }},
    {info, "channel_idle", ended<Why::idle>,
     [](const Snapshot& now, uint64_t count) {
       return "a channel that nobody used is closed, to " + whom(count, now.peers.of(Why::idle)) +
              "; the next work makes another one (DeviceOptions::idle_timeout)";
     }},
    {warning, "path_lost", paths_lost,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "is ", "are ") + "lost, the latest to " +
              to_string(now.peers.path_lost.latest) +
              "; all goes over the others. Fix: see whether its interface is up and its network "
              "carries packets of this size";
     }},
    {info, "path_back", paths_back,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "carries ", "carry ") + "packets again, the latest to " +
              to_string(now.peers.path_back.latest);
     }},
    {info, "path_added", paths_added,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "is ", "are ") + "there more, the latest to " +
              to_string(now.peers.path_added.latest);
     }},
    {info, "path_removed", paths_removed,
     [](const Snapshot& now, uint64_t count) {
       return some(count, "path", "was ", "were ") + "taken away, the latest to " +
              to_string(now.peers.path_removed.latest);
     }},
    {warning, "peer_silent", silent,
     [](const Snapshot& now, uint64_t count) {
       return "nothing is read any more by " + whom(count, now.peers.silent) +
              ", whose process is there: copies to its memory go on, what it is told waits. Fix: "
              "let that process go on (it is stopped, or short of processor)";
     }},
    {warning, "channel_not_made", ended<Why::unreachable>,
     [](const Snapshot& now, uint64_t count) {
       return "no channel could be made to " + whom(count, now.peers.of(Why::unreachable)) +
              ", which did not answer in time. Fix: see whether it runs, and whether a firewall or "
              "a route stands between";
     }},
    {warning, "version_mismatch", ended<Why::refused>,
     [](const Snapshot& now, uint64_t count) {
       return "no channel could be made to " + whom(count, now.peers.of(Why::refused)) +
              ", which speaks another version. Fix: upgrade the older of the two";
     }},
    {warning, "no_room", ended<Why::no_room>,
     [](const Snapshot& now, uint64_t count) {
       return "no channel could be made: " +
              explain_no_room(whom(count, now.peers.of(Why::no_room)), now.no_room).message;
     }},
    {warning, "peer_restarted", ended<Why::restarted>,
     [](const Snapshot& now, uint64_t count) {
       return "another process has taken the place of " +
              whom(count, now.peers.of(Why::restarted)) +
              ": what was imported from there is gone. Fix: import it again";
     }},
    {info, "peer_left", ended<Why::left>,
     [](const Snapshot& now, uint64_t count) {
       return "the device was closed, or forgotten, of " + whom(count, now.peers.of(Why::left));
     }},
    {warning, "works_unknown", counted<&Statistics::unknown>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "work") +
              "left without an answer, and may or may not have executed. Fix: repeat what may be "
              "done twice; ask the targets for the rest";
     }},
    {warning, "works_timed_out", counted<&Statistics::timeouts>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "work") +
              "given up for lack of progress. Fix: see whether the targets run; "
              "DeviceOptions::operation_timeout is how long is waited";
     }},
    {warning, "refused", counted<&Statistics::refused>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "slice") +
              "refused that peers sent: a wrong token, out of bounds, without the right, or an "
              "unknown operation. Fix: let them import anew what was registered anew; if nobody "
              "of yours does this, keep strangers out";
     }},
    {warning, "dropped_damaged", counted<&Statistics::dropped_icrc>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "dropped with a wrong ICRC: damaged on the way, or not of this protocol. Fix: look "
              "for a bad cable, or for who else sends to this port";
     }},
    {warning, "dropped_malformed", counted<&Statistics::dropped_malformed>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "dropped that made no sense. Fix: use one version everywhere; if you do, find out "
              "who sends them";
     }},
    {warning, "dropped_other", counted<&Statistics::dropped_other>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "dropped: a source that is not its peer's, another partition, out of range, or no "
              "memory. Fix: have one address for each peer (no NAT that changes it)";
     }},
    {info, "setup_cookies", counted<&Statistics::setup_cookies>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "OPEN") +
              "answered with a cookie: peers have restarted or lost their channels, more than 64 "
              "came at once, or another host forges OPENs";
     }},
    {info, "setup_ignored", counted<&Statistics::setup_incarnation>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "set-up message") +
              "ignored that named another incarnation: this process or a peer has restarted, or "
              "another host forges messages";
     }},
    {error, "capture_incomplete", counted<&Statistics::uncaptured>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "packet") +
              "not written to the capture: its disk is full, or its limit reached. Fix: make room, "
              "or capture less (snap=, limit=)";
     }},
    {error, "send_failed", counted<&Statistics::send_failures>,
     [](const Snapshot& now, uint64_t count) {
       const std::string why =
           now.send_failure == 0 ? "" : std::string(": ") + std::strerror(now.send_failure);
       return some(count, "frame") + "refused by the system" + why +
              ". Fix: look for a filter, a route, or a smaller MTU on the way (mtu= in the device "
              "string)";
     }},
    {warning, "unreachable", counted<&Statistics::unreachable>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "message", "came ", "came ") +
              "from the network that nobody can be reached where packets went. Fix: see whether "
              "the peer runs, and the route to it";
     }},
    {warning, "not_fenced", counted<&Statistics::not_fenced>,
     [](const Snapshot&, uint64_t count) {
       return some(count, "segment") +
              "unregistered while somebody who was copying stands still: he may write once more. "
              "Fix: let that process go on or end it, and unregister again";
     }},
};

}  // namespace

std::span<const NewsKind> all_news() { return kinds; }

}  // namespace urma::engine
