#include "urma/core/statistics.h"

namespace urma {
namespace {

constexpr auto total = Metric::Window::since_open;
constexpr auto now = Metric::Window::now;

// The parts.
constexpr std::string_view own = "works of this process";
constexpr std::string_view peers = "works of peers";
constexpr std::string_view packets = "packets";
constexpr std::string_view objects = "peers and objects";
constexpr std::string_view driver = "driver";

using S = Statistics;

constexpr Metric metrics[] = {
    {"works", "works", total, own, "Taken from Jetties by the device.", &S::works},
    {"completions", "completions", total, own, "Shown to Jetties, those of arrivals included.",
     &S::completions},
    {"receiver_not_ready", "answers", total, own,
     "Targets said that they had no receive slot (RNR).", &S::receiver_not_ready},
    {"retries", "slices", total, own, "Sent again as transactions, after that or a new channel.",
     &S::retries},
    {"timeouts", "works", total, own, "Given up after their operation timeout.", &S::timeouts},
    {"unknown", "works", total, own, "Ended as unknown: they may or may not have executed.",
     &S::unknown},
    {"held", "works", total, own,
     "Did not begin at once, for works before them: fences, and order that is kept here.",
     &S::held},
    {"copied", "slices", total, own, "Copied to or from mapped memory, of which nobody is told.",
     &S::copied},
    {"copied_bytes", "bytes", total, own, "Copied so.", &S::copied_bytes},
    {"copied_past_caches", "slices", total, own,
     "Copied past the caches, for their works are too large for these.", &S::copied_past_caches},
    {"past_caches_from", "bytes", now, own,
     "Works from this size on go past the caches; none: not measured yet, or of no use.",
     &S::past_caches_from},

    {"executed", "slices", total, peers, "Executed here for peers.", &S::executed},
    {"refused", "slices", total, peers,
     "Refused: a wrong token, out of bounds, without the right, an unknown operation.",
     &S::refused},
    {"not_ready", "answers", total, peers, "Peers were told that there was no receive slot here.",
     &S::not_ready},
    {"repeated", "slices", total, peers, "Came again after they had been executed.", &S::repeated},
    {"withdrawn", "slices", total, peers, "Given up by their initiator before they were whole.",
     &S::withdrawn},
    {"unheard", "slices", total, peers,
     "Dropped, for their peer had shown too many wrong tokens: no answer, 100 ms to 10 s long.",
     &S::unheard},
    {"parked", "slices", total, peers, "Came before their turn, and were kept until it came.",
     &S::parked},
    {"too_early", "slices", total, peers, "Came before their turn, and had to come again.",
     &S::too_early},
    {"datagrams_sent", "messages", total, own, "Sent by unreliable Jetties; some may be lost.",
     &S::datagrams_sent},
    {"datagrams_received", "messages", total, peers, "Delivered of those that others sent so.",
     &S::datagrams_received},
    {"datagrams_dropped", "messages", total, peers,
     "Not delivered: nobody had posted a receive, there is no such Jetty, the token was wrong; or "
     "the way to their peer was full.",
     &S::datagrams_dropped},

    {"packets_sent", "packets", total, packets, "Data sent, retransmissions included.",
     &S::packets_sent},
    {"retransmitted", "packets", total, packets, "Sent again, for they seemed lost.",
     &S::retransmitted},
    {"filler", "packets", total, packets, "Sent in the place of withdrawn ones, or to be alive.",
     &S::filler},
    {"acks_sent", "packets", total, packets, "Acknowledgements sent.", &S::acks_sent},
    {"packets_received", "packets", total, packets, "Received, of any kind, with the ICRC right.",
     &S::packets_received},
    {"duplicates", "packets", total, packets, "Received again.", &S::duplicates},
    {"out_of_order", "packets", total, packets, "Received before others that were sent earlier.",
     &S::out_of_order},
    {"retransmission_timeouts", "timeouts", total, packets,
     "Nothing was acknowledged for so long that packets were sent again.",
     &S::retransmission_timeouts},
    {"dropped_icrc", "packets", total, packets, "Dropped: damaged on the way, or of strangers.",
     &S::dropped_icrc},
    {"dropped_malformed", "packets", total, packets, "Dropped: whole, but they make no sense.",
     &S::dropped_malformed},
    {"dropped_unknown_channel", "packets", total, packets,
     "Dropped: for a channel that there is not, or no more.", &S::dropped_unknown_channel},
    {"dropped_other", "packets", total, packets,
     "Dropped: wrong source or partition, a PSN out of range, no memory.", &S::dropped_other},
    {"setup_sent", "messages", total, packets,
     "Messages sent that make, check or end channels; the answers to them included.",
     &S::setup_sent},
    {"setup_received", "messages", total, packets,
     "Such messages received whole; those that were ignored included.", &S::setup_received},
    {"setup_cookies", "messages", total, packets,
     "OPENs answered with a cookie (RETRY): they could end a channel, or 64 others were half open.",
     &S::setup_cookies},
    {"setup_refused", "messages", total, packets,
     "OPENs refused: for another version, another incarnation, or for want of room.",
     &S::setup_refused},
    {"setup_incarnation", "messages", total, packets,
     "Ignored: name another incarnation of this device or of the peer; forged, or from before a "
     "restart.",
     &S::setup_incarnation},
    {"setup_late", "messages", total, packets,
     "Ignored: repeat or answer something that is over, or that this device never asked.",
     &S::setup_late},
    {"setup_declined", "messages", total, packets,
     "Ignored: this device closes, asks its peer itself, still uses the channel, or got too many.",
     &S::setup_declined},
    {"setup_unsent", "messages", total, packets,
     "Not sent: their queue was full, their path gone, or 10 RESETs in 10 ms were sent already.",
     &S::setup_unsent},

    {"peers", "peers", now, objects, "Other devices that are known, and this one to itself.",
     &S::peers},
    {"peers_restarted", "peers", total, objects,
     "Found to be gone: another process runs at their address.", &S::peers_restarted},
    {"peers_left", "peers", total, objects, "Closed their devices, or were forgotten.",
     &S::peers_left},
    {"channels", "channels", now, objects, "To peers.", &S::channels},
    {"channels_made", "channels", total, objects, "Made.", &S::channels_made},
    {"channels_not_made", "channels", total, objects,
     "Given up: nobody answered in time, or one of another version, or one without room.",
     &S::channels_not_made},
    {"channels_lost", "channels", total, objects, "Lost: nothing was heard of the peer any more.",
     &S::channels_lost},
    {"channels_idle", "channels", total, objects,
     "Closed, for nobody had used them for DeviceOptions::idle_timeout.", &S::channels_idle},
    {"paths_lost", "paths", total, objects,
     "Lost, of several to a peer: all goes over the others (Device::paths).", &S::paths_lost},
    {"paths_back", "paths", total, objects, "Found to carry packets again.", &S::paths_back},
    {"jetties", "Jetties", now, objects, "Open, JFRs and one of the device's own included.",
     &S::jetties},
    {"segments", "segments", now, objects, "Registered.", &S::segments},
    {"not_fenced", "calls", total, objects,
     "Of unregister, which could not ensure that no late copy arrives.", &S::not_fenced},

    {"frames_sent", "frames", total, driver, "Handed to the medium.", &S::frames_sent},
    {"frames_received", "frames", total, driver, "Taken from the medium.", &S::frames_received},
    {"send_calls", "calls", total, driver, "Of the system to send, or their like.", &S::send_calls},
    {"receive_calls", "calls", total, driver, "Of the system to receive, or their like.",
     &S::receive_calls},
    {"send_failures", "frames", total, driver,
     "Not taken by the medium: too large, filtered, no memory.", &S::send_failures},
    {"unreachable", "messages", total, driver, "Of the network: nobody can be reached there.",
     &S::unreachable},
    {"faults_injected", "faults", total, driver, "Made on purpose, by the driver `fault`.",
     &S::faults_injected},
    {"uncaptured", "packets", total, driver,
     "Not written by the driver `pcap`: disk full, or its limit reached.", &S::uncaptured},
    {"passes", "passes", total, driver, "Of the engine.", &S::passes},
};

static_assert(sizeof(Statistics) == std::size(metrics) * sizeof(uint64_t),
              "each number has one row");

}  // namespace

std::span<const Metric> all_metrics() { return metrics; }

}  // namespace urma
