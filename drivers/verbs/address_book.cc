// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/address_book.h"

#include <algorithm>

#include "base/bits.h"

namespace urma::drivers::verbs {

uint64_t AddressBook::HashOf::operator()(const Endpoint& at) const {
  const std::byte* const address = at.address.bytes.data();
  return mix_bits(load_be<8>(address) ^ mix_bits(load_be<8>(address + 8) + at.port));
}

AddressBook::AddressBook(Finder& finder) : finder_(finder) { entries_.reserve(most); }

AddressBook::~AddressBook() {
  // A forked child shares the handles with its parent, which goes on using them.
  if (getpid() != maker_) return;
  for (const Entry& entry : entries_) {
    if (entry.destination.handle != nullptr) finder_.discard(entry.destination.handle);
  }
}

AddressBook::Entry* AddressBook::look_up(const Endpoint& at) {
  if (latest_ < entries_.size() && entries_[latest_].at == at) return &entries_[latest_];
  const uint32_t found = index_.find(at);
  if (found == index_.none) return nullptr;
  latest_ = found;
  return &entries_[found];
}

// Makes an entry. If the book is full, it replaces the entry that has been unused for longest.
AddressBook::Entry& AddressBook::entry_of(const Endpoint& at) {
  if (entries_.size() < most) {
    entries_.push_back({.at = at});
    index_.insert(at, static_cast<uint32_t>(entries_.size() - 1));
    return entries_.back();
  }
  Entry& oldest = *std::ranges::min_element(entries_, {}, &Entry::used);
  index_.erase(oldest.at);
  if (oldest.destination.handle != nullptr) finder_.discard(oldest.destination.handle);
  oldest = {.at = at};
  index_.insert(at, static_cast<uint32_t>(&oldest - entries_.data()));
  return oldest;
}

void AddressBook::ask(Entry& entry, Time now) {
  if (now < entry.ask_at || !finder_.ask(entry.at)) return;
  entry.ask_at = now + entry.pause;
  entry.pause = std::min(entry.pause * 2, longest_pause);
}

const Destination* AddressBook::find(const Endpoint& to, Time now) {
  Entry* entry = look_up(to);
  if (entry == nullptr) entry = &entry_of(to);
  entry->used = now;
  if (entry->destination.handle == nullptr) {
    ask(*entry, now);
    return nullptr;
  }
  if (now - entry->heard > patience) ask(*entry, now);
  return &entry->destination;
}

bool AddressBook::awaits(const Endpoint& to) {
  const Entry* const entry = look_up(to);
  return entry != nullptr && !entry->absent;
}

void AddressBook::heard(const Endpoint& from, uint32_t number, Time now) {
  Entry* const entry = look_up(from);
  if (entry == nullptr || entry->destination.handle == nullptr) return;
  if (entry->destination.number == number) {
    entry->heard = now;
    entry->pause = first_pause;
  } else {
    // Only the finder's answer changes where datagrams go: anybody can send this one.
    ask(*entry, now);
  }
}

void AddressBook::note(const Finder::Answer& answer, Time now) {
  Entry* const entry = look_up(answer.of);
  const Destination& found = answer.destination;
  if (found.handle == nullptr) {
    // A destination that is known may still be right.
    if (entry != nullptr) entry->absent = true;
    return;
  }
  if (entry == nullptr) return finder_.discard(found.handle);
  entry->absent = false;
  const Destination before = std::exchange(entry->destination, found);
  if (before.handle != nullptr) finder_.discard(before.handle);
  if (before.number != found.number) entry->heard = now;
}

}  // namespace urma::drivers::verbs
