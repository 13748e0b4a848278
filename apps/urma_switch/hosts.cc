// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/hosts.h"

#include <algorithm>

#include "base/assert.h"
#include "base/flat_map.h"

namespace urma::apps::switches {
namespace {

// Addresses that the switch chooses, if it has them; smaller ones are left to devices that ask.
constexpr uint32_t first_chosen = 0x10000;

uint64_t word_of(const Place& at, size_t first) {
  return load_be<8>(at.endpoint.address.bytes.data() + first);
}

// The UDP port and the medium.
uint64_t rest_of(const Place& at) {
  return at.endpoint.port | static_cast<uint64_t>(at.medium) << 16;
}

}  // namespace

size_t Hosts::HashPlace::operator()(const Place& at) const {
  return mix_bits(word_of(at, 0) ^ mix_bits(word_of(at, 8) ^ mix_bits(rest_of(at))));
}

Hosts::Hosts(const Settings& settings)
    : settings_(settings), hash_(settings.key[0], settings.key[1]), hosts_(settings.ports) {}

uint32_t Hosts::port_of(const Place& at) const {
  const auto found = by_place_.find(at);
  return found == by_place_.end() ? none : found->second;
}

Hosts::Outcome Hosts::handle(const LinkControl& message, const Place& from, Time now) {
  if (message.type == LinkMessage::attach) return attach(message, from, now);
  const uint32_t port = port_of(from);
  const bool leaves =
      message.type == LinkMessage::detach && port != none && hosts_[port].nonce == message.nonce;
  if (!leaves) return {};
  ++counters_.detached;
  forget(port);
  return {.closed = port};
}

Hosts::Outcome Hosts::attach(const LinkControl& message, const Place& from, Time now) {
  Outcome out;
  uint32_t port = port_of(from);
  // Only the device, the switch and hosts that can read the packets between them know the nonce.
  const bool known = port != none && hosts_[port].nonce == message.nonce;
  const uint64_t cookie = cookie_for(from, message.nonce);
  if (!known && message.cookie != cookie) {
    ++counters_.challenged;
    out.answer = message;
    out.answer->type = LinkMessage::challenge;
    out.answer->cookie = cookie;
    return out;
  }
  const bool here =
      message.cna == 0 || (message.cna >= settings_.first_cna && message.cna <= settings_.last_cna);
  if (!here) return refuse(message, LinkRefusal::elsewhere, counters_.refused_elsewhere);
  const auto claimant = by_cna_.find(message.cna);
  if (message.cna != 0 && claimant != by_cna_.end() && claimant->second != port) {
    return refuse(message, LinkRefusal::taken, counters_.refused_taken);
  }
  const bool same = known && (message.cna == 0 || message.cna == hosts_[port].cna);
  if (port != none && !same) {
    // Another incarnation, at the address of the one before, which has therefore ended.
    out.closed = port;
    ++counters_.detached;
    forget(port);
    port = none;
  }
  if (port == none) {
    port = free_port();
    const uint32_t cna = message.cna != 0 ? message.cna : free_cna(from);
    if (port == none || cna == 0) {
      URMA_ASSERT(out.closed == none, "a device that has ended leaves a port and a CNA");
      return refuse(message, LinkRefusal::no_port, counters_.refused_full);
    }
    hosts_[port] = {.at = from, .cna = cna, .nonce = message.nonce};
    by_place_.emplace(from, port);
    by_cna_.emplace(cna, port);
    ++counters_.attached;
    out.opened = port;
  }
  hosts_[port].lease_ends = now + settings_.lease;
  const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.lease);
  out.answer = LinkControl{.type = LinkMessage::attached,
                           .cna = hosts_[port].cna,
                           .mtu_log2 = settings_.mtu_log2,
                           .lease_ms = static_cast<uint16_t>(lease.count()),
                           .nonce = message.nonce,
                           .cookie = cookie_of(settings_.metering)};
  return out;
}

Hosts::Outcome Hosts::refuse(const LinkControl& message, LinkRefusal why, uint64_t& counter) {
  ++counter;
  Outcome out{.answer = message};
  out.answer->type = LinkMessage::refused;
  out.answer->refusal = why;
  return out;
}

uint32_t Hosts::age(Time now) {
  for (uint32_t port = 0; port < hosts_.size(); ++port) {
    if (hosts_[port].cna == 0 || now < hosts_[port].lease_ends) continue;
    ++counters_.aged_out;
    forget(port);
    return port;
  }
  return none;
}

uint32_t Hosts::free_port() const {
  for (uint32_t port = 0; port < hosts_.size(); ++port) {
    if (hosts_[port].cna == 0) return port;
  }
  return none;
}

// Returns 0 if none is free.
uint32_t Hosts::free_cna(const Place& at) const {
  const uint32_t least = std::max(settings_.first_cna, first_chosen);
  const uint32_t cna = least > settings_.last_cna ? 0 : free_cna_from(least, at);
  return cna != 0 ? cna : free_cna_from(settings_.first_cna, at);
}

// The choice depends on the device's address, so that devices get their CNAs again from a switch
// that was restarted, in whatever order they come.
uint32_t Hosts::free_cna_from(uint32_t least, const Place& at) const {
  const uint32_t choices = settings_.last_cna + 1 - least;
  const auto first = static_cast<uint32_t>(HashPlace()(at) % choices);
  // One of them is free if they are more than the ports.
  for (uint32_t i = 0; i < std::min(choices, ports() + 1); ++i) {
    const uint32_t cna = least + (first + i) % choices;
    if (!by_cna_.contains(cna)) return cna;
  }
  return 0;
}

void Hosts::forget(uint32_t port) {
  by_place_.erase(hosts_[port].at);
  by_cna_.erase(hosts_[port].cna);
  hosts_[port] = {};
}

uint64_t Hosts::cookie_for(const Place& at, uint64_t nonce) const {
  const uint64_t words[] = {word_of(at, 0), word_of(at, 8), rest_of(at), nonce};
  return hash_(words) | 1;  // zero means "no cookie"
}

}  // namespace urma::apps::switches
