// SPDX-License-Identifier: Apache-2.0
#include "urma/core/statistics.h"

namespace urma {
namespace {

constexpr auto total = Metric::Window::since_open;
constexpr auto now = Metric::Window::now;

// The values of Metric::part.
constexpr std::string_view own = "works of this process";
constexpr std::string_view peers = "works of peers";
constexpr std::string_view packets = "packets";
constexpr std::string_view objects = "peers and objects";
constexpr std::string_view driver = "driver";

using S = Statistics;

constexpr Metric metrics[] = {
    {"works", "works", total, own, "Works that the device has taken from Jetties.", &S::works},
    {"completions", "completions", total, own,
     "Completions delivered to Jetties, those of arrivals included.", &S::completions},
    {"receiver_not_ready", "answers", total, own,
     "Answers of targets that had no vacant receive slot (UB: RNR).", &S::receiver_not_ready},
    {"retries", "slices", total, own,
     "Slices sent again after a receiver-not-ready answer, or over a new channel.", &S::retries},
    {"timeouts", "works", total, own, "Works that ended after their operation timeout.",
     &S::timeouts},
    {"unknown", "works", total, own,
     "Works that ended as unknown: they may or may not have executed.", &S::unknown},
    {"held", "works", total, own,
     "Works that waited for earlier works, because of a fence, or of an order that this side "
     "keeps.",
     &S::held},
    {"copied", "slices", total, own, "Slices copied to or from mapped memory, without a packet.",
     &S::copied},
    {"copied_bytes", "bytes", total, own, "Bytes of the slices that `copied` counts.",
     &S::copied_bytes},
    {"copied_past_caches", "slices", total, own,
     "Slices that `copied` counts and that bypassed the caches, because their works are larger "
     "than the caches.",
     &S::copied_past_caches},
    {"carried", "slices", total, own,
     "Slices that RDMA adapters or GPUs moved between registered segments by themselves, without a "
     "packet.",
     &S::carried},
    {"carried_bytes", "bytes", total, own, "Bytes of the slices that `carried` counts.",
     &S::carried_bytes},
    {"past_caches_from", "bytes", now, own,
     "Works from this size on bypass the caches; no value if this was not measured, or is not "
     "faster.",
     &S::past_caches_from},

    {"executed", "slices", total, peers, "Slices executed here for peers.", &S::executed},
    {"refused", "slices", total, peers,
     "Slices refused: a wrong token, out of bounds, a missing right, or an unknown operation.",
     &S::refused},
    {"not_ready", "answers", total, peers,
     "Answers to peers which said that no receive slot was vacant here.", &S::not_ready},
    {"repeated", "slices", total, peers, "Slices received again after they had been executed.",
     &S::repeated},
    {"withdrawn", "slices", total, peers,
     "Slices cancelled by their initiator before all their packets had arrived.", &S::withdrawn},
    {"ignored", "slices", total, peers,
     "Slices dropped without an answer because their peer had sent too many wrong tokens: its "
     "requests are ignored for 100 ms to 10 s.",
     &S::ignored},
    {"parked", "slices", total, peers,
     "Slices that arrived before their turn, and were kept until it came.", &S::parked},
    {"too_early", "slices", total, peers,
     "Slices that arrived before their turn, and had to be sent again.", &S::too_early},
    {"datagrams_sent", "messages", total, own,
     "Messages sent by unreliable Jetties; some may be lost.", &S::datagrams_sent},
    {"datagrams_received", "messages", total, peers,
     "Messages of unreliable Jetties that were delivered here.", &S::datagrams_received},
    {"datagrams_dropped", "messages", total, peers,
     "Messages of unreliable Jetties that were dropped: here, without a posted receive, with an "
     "unknown Jetty or a wrong token; or before sending, because the queue to their peer was full.",
     &S::datagrams_dropped},

    {"packets_sent", "packets", total, packets, "Data packets sent, retransmissions included.",
     &S::packets_sent},
    {"retransmitted", "packets", total, packets,
     "Packets sent again because they were believed lost.", &S::retransmitted},
    {"acknowledged_bytes", "bytes", total, packets,
     "Bytes of data packets, with their headers, that peers have acknowledged; of each packet "
     "once.",
     &S::acknowledged_bytes},
    {"filler", "packets", total, packets,
     "Packets sent without data, in place of cancelled ones or to keep a channel alive.",
     &S::filler},
    {"paced_packets", "packets", total, packets,
     "Data packets sent by channels whose congestion control says when each packet may leave.",
     &S::paced_packets},
    {"paced_trains", "bursts", total, packets,
     "Bursts in which these packets left: the later a timer fires, the longer a burst is.",
     &S::paced_trains},
    {"acks_sent", "packets", total, packets, "Acknowledgements sent.", &S::acks_sent},
    {"packets_received", "packets", total, packets,
     "Packets of any kind received with a correct ICRC.", &S::packets_received},
    {"duplicates", "packets", total, packets, "Packets received more than once.", &S::duplicates},
    {"out_of_order", "packets", total, packets,
     "Packets received before others that had been sent earlier.", &S::out_of_order},
    {"retransmission_timeouts", "timeouts", total, packets,
     "Time-outs without any acknowledgement, after which packets were sent again.",
     &S::retransmission_timeouts},
    {"packets_marked", "packets", total, packets,
     "Packets received with a mark of congestion (ECN), on channels whose peer asked for reports.",
     &S::packets_marked},
    {"overtaken_reports", "packets", total, packets,
     "Acknowledgements whose report of congestion was ignored, because a later one had arrived.",
     &S::overtaken_reports},
    {"notifications", "packets", total, packets, "Congestion notifications received (UB: CNP).",
     &S::notifications},
    {"dropped_icrc", "packets", total, packets,
     "Packets dropped because of a wrong ICRC: damaged on the way, or not of this protocol.",
     &S::dropped_icrc},
    {"dropped_malformed", "packets", total, packets,
     "Packets dropped because their content is invalid, although their ICRC is correct; or taken "
     "without their CCI, which the channel has not agreed on.",
     &S::dropped_malformed},
    {"dropped_unknown_channel", "packets", total, packets,
     "Packets dropped because their channel does not exist, or no longer exists.",
     &S::dropped_unknown_channel},
    {"dropped_other", "packets", total, packets,
     "Packets dropped: a wrong source or partition, a PSN out of range, or no memory.",
     &S::dropped_other},
    {"setup_sent", "messages", total, packets,
     "Set-up messages sent, which make, check or end channels; answers included.", &S::setup_sent},
    {"setup_received", "messages", total, packets,
     "Set-up messages received with a correct ICRC, those that were ignored included.",
     &S::setup_received},
    {"setup_cookies", "messages", total, packets,
     "OPENs answered with a cookie (RETRY), because they could end a channel, or 64 other channels "
     "were half open.",
     &S::setup_cookies},
    {"setup_refused", "messages", total, packets,
     "OPENs refused: another version, another incarnation, or no room.", &S::setup_refused},
    {"setup_incarnation", "messages", total, packets,
     "Set-up messages ignored because they name another incarnation of this device or of the "
     "peer: forged, or from before a restart.",
     &S::setup_incarnation},
    {"setup_late", "messages", total, packets,
     "Set-up messages ignored because they repeat a message, or answer a question that has ended "
     "or that this device never asked.",
     &S::setup_late},
    {"setup_declined", "messages", total, packets,
     "Set-up messages ignored because this device is closing, is opening the channel itself, "
     "still uses the channel, or received too many.",
     &S::setup_declined},
    {"setup_unsent", "messages", total, packets,
     "Set-up messages not sent: their queue was full, their path was removed, or 10 RESETs in 10 "
     "ms had been sent already.",
     &S::setup_unsent},

    {"peers", "peers", now, objects, "Devices that this one knows, itself included.", &S::peers},
    {"peers_restarted", "peers", total, objects,
     "Peers found to have ended: another process runs at their address.", &S::peers_restarted},
    {"peers_left", "peers", total, objects, "Peers that closed their devices, or were forgotten.",
     &S::peers_left},
    {"channels", "channels", now, objects, "Channels to peers.", &S::channels},
    {"channels_made", "channels", total, objects, "Channels made.", &S::channels_made},
    {"channels_not_made", "channels", total, objects,
     "Attempts to make a channel that failed: no answer in time, another version, or no room at "
     "the peer.",
     &S::channels_not_made},
    {"channels_lost", "channels", total, objects,
     "Channels lost because nothing was received from the peer any longer.", &S::channels_lost},
    {"channels_idle", "channels", total, objects,
     "Channels closed because they were not used for DeviceOptions::idle_timeout.",
     &S::channels_idle},
    {"channels_without_reports", "channels", total, objects,
     "Channels that use ldcp, or else aimd, because the peer does not report what the chosen "
     "congestion control needs.",
     &S::channels_without_reports},
    {"paths_lost", "paths", total, objects,
     "Losses of one of several paths to a peer; its traffic then uses the others (Device::paths).",
     &S::paths_lost},
    {"paths_back", "paths", total, objects, "Lost paths found to carry packets again.",
     &S::paths_back},
    {"jetties", "Jetties", now, objects,
     "Open Jetties, JFRs and one Jetty of the device itself included.", &S::jetties},
    {"segments", "segments", now, objects, "Registered segments.", &S::segments},
    {"not_fenced", "calls", total, objects,
     "Calls of unregister that could not ensure that no late copy arrives.", &S::not_fenced},

    {"frames_sent", "frames", total, driver, "Frames handed to the medium.", &S::frames_sent},
    {"frames_received", "frames", total, driver, "Frames taken from the medium.",
     &S::frames_received},
    {"send_calls", "calls", total, driver,
     "System calls to send, or their equivalent on the medium.", &S::send_calls},
    {"receive_calls", "calls", total, driver,
     "System calls to receive, or their equivalent on the medium.", &S::receive_calls},
    {"send_failures", "frames", total, driver,
     "Frames that the medium refused: too large, filtered, or no memory.", &S::send_failures},
    {"unreachable", "messages", total, driver,
     "Messages of the network (ICMP) that a destination cannot be reached.", &S::unreachable},
    {"faults_injected", "faults", total, driver, "Faults made on purpose, by the driver `fault`.",
     &S::faults_injected},
    {"uncaptured", "packets", total, driver,
     "Packets that the driver `pcap` did not write: disk full, or its limit reached.",
     &S::uncaptured},
    {"passes", "passes", total, driver, "Passes of the engine.", &S::passes},
};

static_assert(sizeof(Statistics) == std::size(metrics) * sizeof(uint64_t),
              "each number has one row");

}  // namespace

std::span<const Metric> all_metrics() { return metrics; }

}  // namespace urma
