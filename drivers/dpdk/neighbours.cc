// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/neighbours.h"

#include <algorithm>

#include "base/entropy.h"

namespace urma::drivers::dpdk {
namespace {

SipHash secret_hash() {
  SecureEntropy entropy;
  const uint64_t first = entropy.next();
  return {first, entropy.next()};
}

}  // namespace

Neighbours::Neighbours()
    : table_(std::make_unique<std::array<Set, sets>>()), hash_(secret_hash()) {}

Neighbours::Set& Neighbours::set_of(const Eid& ip) {
  uint64_t words[2];
  std::memcpy(words, ip.bytes.data(), sizeof words);
  return (*table_)[hash_(words) % sets];
}

Neighbours::Neighbour* Neighbours::look_up(const Eid& ip) {
  for (Neighbour& one : set_of(ip)) {
    if (one.ip == ip) return &one;
  }
  return nullptr;
}

Neighbours::Neighbour* Neighbours::make_room(const Eid& ip, bool wanted) {
  Set& set = set_of(ip);
  Neighbour& least = *std::min_element(set.begin(), set.end(), [](const auto& a, const auto& b) {
    return a.wanted != b.wanted ? b.wanted : a.used_at < b.used_at;
  });
  if (least.wanted && !wanted) return nullptr;
  least = {};
  least.ip = ip;
  least.wanted = wanted;
  return &least;
}

bool Neighbours::question_due(Neighbour& neighbour, Time now) {
  if (neighbour.known && now - neighbour.confirmed_at < fresh) return false;
  const Duration pause = neighbour.known ? between_late_questions : between_questions;
  if (neighbour.questions > 0 && now - neighbour.asked_at < pause) return false;
  if (neighbour.known && neighbour.questions >= patience) {
    neighbour.known = false;
    ++changes_;
    neighbour.questions = 0;
  }
  ++neighbour.questions;
  neighbour.asked_at = now;
  return true;
}

Neighbours::Found Neighbours::find(const Eid& ip, Time now) {
  Neighbour* found = look_up(ip);
  if (found == nullptr) found = make_room(ip, true);
  found->wanted = true;
  found->used_at = now;
  const bool ask = question_due(*found, now);
  return {found->known ? &found->mac : nullptr, ask};
}

void Neighbours::learn(const Eid& ip, const Mac& mac, bool asks_us, Time now) {
  Neighbour* found = look_up(ip);
  if (found == nullptr && asks_us) found = make_room(ip, false);
  if (found == nullptr) return;
  if (found->known && found->mac != mac) ++changes_;
  found->mac = mac;
  found->known = true;
  found->questions = 0;
  found->used_at = std::max(found->used_at, now);
  found->confirmed_at = now;
}

}  // namespace urma::drivers::dpdk
