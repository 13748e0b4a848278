// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/rights.h"
#include "urma/core/time.h"

namespace urma {

// A metric of a device of another process. The texts are from that process's version of the library
// (see Metric).
struct ObservedMetric {
  std::string name;     // "packets_sent"
  std::string unit;     // "packets"
  std::string window;   // "since open" or "now"
  std::string part;     // the part of the device to which it belongs
  std::string meaning;  // a sentence: what it counts
  uint64_t value = 0;   // in `unit`; UINT64_MAX: the metric has no value
};

// A channel of an observed device to one peer, or one path of it if it has several. The values are
// those of the device's last report; one that is not set is not known to that process, or does not
// apply.
struct ObservedChannel {
  std::string peer;   // its address on this path: "10.0.0.9:4792"
  std::string from;   // the device's own address on this path; empty if that is not known
  unsigned path = 0;  // the number of the path; 0 if there is only one
  // "up"; "silent": the peer's process exists but reads nothing; "lost": the path does not answer,
  // and others carry the channel
  std::string state;
  std::string congestion;       // the congestion control that it sends with, or "none"
  std::string why;              // why it is not the one that the application asked for; or empty
  std::optional<Duration> rtt;  // smoothed
  std::optional<Duration> least_rtt;         // the least that was measured
  std::optional<Duration> age;               // since the channel was made
  std::optional<Duration> unheard;           // since the peer last sent anything
  std::optional<uint64_t> window_bytes;      // how much may be in flight
  std::optional<uint64_t> inflight_bytes;    // how much is
  std::optional<uint64_t> bytes_per_second;  // the pace, if packets are paced
  std::optional<uint64_t> sent;              // data packets, each copy, since the path was added
  std::optional<uint64_t> lost;              // of these, believed lost
  std::optional<uint64_t> retransmitted;     // packets
  std::optional<uint64_t> spurious;          // packets that were believed lost and arrived
  std::optional<uint64_t> not_ready;         // times that the peer was not ready
  // Bytes of data packets with their headers that the peer has acknowledged, each packet once,
  // since the channel was made. Not set over a window of shared memory.
  std::optional<uint64_t> acknowledged_bytes;
};

// The channels of an observed device.
struct ObservedChannels {
  std::vector<ObservedChannel> shown;  // those of one channel follow one another
  uint64_t more = 0;                   // channels beyond the 64 rows of a page
};

// A Jetty of an observed device, a JFS (a queue of works alone), a JFR (a receive queue that
// Jetties share) or a group of Jetties. Not those of the library itself.
struct ObservedJetty {
  std::string kind;                      // "jetty", "jfs", "jfr" or "jetty_group"
  uint32_t id = 0;                       // its number on the device
  std::string state;                     // "ready", "suspended" or "error"
  uint32_t sends = 0;                    // how many works may be outstanding
  uint32_t receives = 0;                 // how many receives it may have; members of a group
  uint32_t jfc = 0;                      // the queue in which its works, or a JFR's arrivals, end
  std::optional<uint32_t> receives_jfc;  // the queue in which arrivals at a Jetty end
  std::optional<uint32_t> jfr;           // the JFR whose receives a Jetty uses
  uint32_t weight = 0;                   // its share among the Jetties that send to one peer
  bool urgent = false;                   // its packets leave before those of usual ones
  bool unreliable = false;               // it sends datagrams
  uint32_t outstanding = 0;              // works
};

// A completion queue of an observed device. Its number is the one by which ObservedJetty names it.
struct ObservedJfc {
  uint32_t number = 0;  // of this device's page
  uint32_t depth = 0;   // entries
};

// A registered segment of an observed device.
struct ObservedSegment {
  uint32_t token_id = 0;               // which several segments may share
  uint64_t address = 0;                // as peers name it
  uint64_t bytes = 0;                  // its size
  Rights rights = Rights::local_only;  // of peers
};

// The objects of an observed device. Tokens are not shown.
struct ObservedObjects {
  std::vector<ObservedJetty> jetties;     // at most 48
  std::vector<ObservedJfc> jfcs;          // at most 16: those of these Jetties
  std::vector<ObservedSegment> segments;  // at most 32
  uint64_t more_jetties = 0;              // those that are not shown
  bool more_jfcs = false;                 // there are others
  uint64_t more_segments = 0;             // those that are not shown
};

// An open device of any process of this user, or of another one (observe_all_devices). Texts
// contain only printable ASCII, whatever that process wrote.
struct ObservedDevice {
  uint32_t uid = 0;     // the user of that process, from the kernel; all else is from the process
  uint64_t pid = 0;     // in the PID namespace of that process (its container)
  std::string process;  // the name of its program
  int64_t process_started = 0;          // seconds since 1970
  int64_t opened = 0;                   // seconds since 1970
  std::string device;                   // the device string
  std::string description;              // as Device::description
  std::string endpoint;                 // "127.0.0.1:4792"
  std::string eid;                      // "127.0.0.1"
  std::string congestion;               // the one that its application asked for; or empty
  std::string congestion_used;          // the one that its channels use if their peer takes part
  std::string congestion_why;           // why it is not the one asked for; or empty
  std::vector<ObservedMetric> metrics;  // all taken at the same moment
  uint64_t reports = 0;                 // the number of reports so far; an idle device makes none
  Time moment{};                        // the time of the last report, of the monotonic clock

  // Nothing if the version of that process does not report them.
  std::optional<ObservedChannels> channels;
  // The same for its objects.
  std::optional<ObservedObjects> objects;

  // Returns the value of a metric, or null if the version of that process does not have this
  // metric.
  const uint64_t* find(std::string_view name) const {
    for (const ObservedMetric& metric : metrics) {
      if (metric.name == name) return &metric.value;
    }
    return nullptr;
  }
};

// The devices that were found, and the pages that could not be read.
struct Observed {
  std::vector<ObservedDevice> devices;  // sorted by process, then by age, the oldest first
  // A sentence for each page of this user that could not be read, with a fix; one sentence for all
  // pages of other users, with their number and the first of them.
  std::vector<std::string> skipped;
  uint64_t unread = 0;  // how many pages could not be read, or are beyond a limit
};

}  // namespace urma
