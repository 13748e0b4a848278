// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "base/siphash.h"
#include "drivers/dpdk/headers.h"
#include "urma/core/time.h"

namespace urma::drivers::dpdk {

// The MAC addresses of the hosts on the link (ARP and NDP share it), in a table of fixed size. It
// knows when to ask for an address, not how: the station, which owns it, sends the questions. Only
// the thread that runs the port calls it.
class Neighbours {
 public:
  static constexpr uint32_t most = 1024;
  // An unknown neighbour is asked for this often, and so is one that has not confirmed its address
  // for `fresh`. Its address is forgotten after `patience` questions without an answer.
  static constexpr Duration between_questions = std::chrono::milliseconds(100);
  static constexpr Duration between_late_questions = std::chrono::seconds(1);
  static constexpr Duration fresh = std::chrono::seconds(30);
  static constexpr uint32_t patience = 5;

  Neighbours();

  struct Found {
    const Mac* mac = nullptr;  // null if it is not known; valid until the next call
    bool ask = false;          // whether a question is due now; the caller sends it
  };
  // Finds the address of a host to which something is to be sent.
  Found find(const Eid& ip, Time now);
  // A host has stated its address. `asks_us`: it wants to send to this host, so the answer will be
  // needed; otherwise only hosts are noted to which something was to be sent.
  void learn(const Eid& ip, const Mac& mac, bool asks_us, Time now);
  // Counts the addresses that were found before and are now others, or not known.
  uint32_t changes() const { return changes_; }

 private:
  static constexpr uint32_t ways = 4;
  static constexpr uint32_t sets = most / ways;

  struct Neighbour {
    Eid ip;  // all zeros if the entry is empty
    Mac mac;
    bool known = false;
    bool wanted = false;  // something was to be sent to it
    uint32_t questions = 0;
    Time used_at{};
    Time asked_at{};
    Time confirmed_at{};
  };
  using Set = std::array<Neighbour, ways>;

  Set& set_of(const Eid& ip);
  Neighbour* look_up(const Eid& ip);
  // Returns the entry that is missed least, emptied. Returns null if all are wanted and `wanted` is
  // not set, so that hosts that ask cannot displace those to which this host sends.
  Neighbour* make_room(const Eid& ip, bool wanted);
  bool question_due(Neighbour& neighbour, Time now);

  std::unique_ptr<std::array<Set, sets>> table_;
  SipHash hash_;  // its key is secret, so that no host can choose addresses that share a set
  uint32_t changes_ = 0;
};

}  // namespace urma::drivers::dpdk
