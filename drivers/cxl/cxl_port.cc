// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/cxl_port.h"

#include <algorithm>
#include <utility>

namespace urma::drivers::cxl {
namespace {

Ways::Shortage shortage_of(Rings::Claim claim) {
  if (claim == Rings::Claim::no_ring) return Ways::Shortage::ways;
  return claim == Rings::Claim::no_memory ? Ways::Shortage::memory : Ways::Shortage::none;
}

// Lists the values that were chosen, with the source of each.
SettingList settings_in_effect(const WindowSettings& settings, Window& window,
                               const PortFacts& facts) {
  const Mapping& mapping = window.mapping();
  const SharedWords& words = mapping.words();
  const BackingFile& file = mapping.file();
  SettingList out = settings.options;
  const bool named = !settings.path.empty();
  out.push_back({"window", file.path(), named ? Origin::device_string : Origin::by_default,
                 named ? "" : "the window of this user",
                 "the file or device that all devices of the window map"});
  out.push_back({"window_size", size_text(mapping.bytes()),
                 settings.bytes != 0 ? Origin::device_string : Origin::system,
                 settings.bytes != 0 ? "all memory was taken when it was made"
                                     : "as it was made; memory is taken as it is used",
                 "the size of the window, in bytes"});
  out.push_back({"segment_memory",
                 size_text(uint64_t{words.parts().granules} * words.parts().granule_bytes),
                 Origin::driver, "half of a window of 8M or more",
                 "the memory for segments that all devices of the window map, in bytes"});
  out.push_back({"coherent", yes_or_no(words.coherent()),
                 settings.coherent ? Origin::device_string : Origin::system,
                 settings.coherent ? "" : "as it was made",
                 "whether processors keep its memory coherent; if not, no segment is mapped"});
  out.push_back({"pages", file.pages().text, Origin::system, file.pages().advice,
                 "the pages with which the window is mapped"});
  out.push_back({"share", window.hand_over() != nullptr ? "segment" : "window",
                 window.hand_over() != nullptr ? Origin::device_string : Origin::by_default,
                 window.hand_over() != nullptr ? "handed over at sockets beside the window"
                                               : "all segments are in the window",
                 "where segments lie: each in a file of its own, or in the window"});
  const bool interrupts = window.slots().barriers().available();
  out.push_back(
      {"membarrier", yes_or_no(interrupts), Origin::system,
       interrupts ? "" : "the kernel is too old, or a sandbox refuses it",
       "whether the kernel interrupts copies when a segment is revoked; if it cannot do so "
       "for all devices of the window, each copy takes a fence"});
  out.push_back({"slot",
                 std::to_string(window.slots().own() + 1) + " of " + std::to_string(slot_count),
                 Origin::drawn, "the first slot that was free",
                 "the slot of the window that this device has"});
  out.push_back({"rings", std::to_string(words.parts().rings), Origin::driver,
                 "follows from the size",
                 "how many rings the window has; each carries packets from one device to another"});
  out.push_back({"address", to_string(facts.self), Origin::driver,
                 "from the window's number and the slot", "where peers reach this device"});
  out.push_back(
      {"eid", to_string(facts.eid), Origin::driver, "the address", "the identity of the device"});
  out.push_back({"mtu", size_text(facts.mtu), Origin::driver, "a slice is one packet",
                 "largest payload of a packet, in bytes"});
  out.push_back({"receive_buffer", size_text(facts.buffer_bytes), Origin::driver, "a ring",
                 "the most bytes from one peer that wait for this device"});
  return out;
}

}  // namespace

Result<std::unique_ptr<PacketPort>> CxlPort::open(const WindowSettings& settings) {
  Result<std::unique_ptr<Window>> window = Window::open(settings);
  if (!window) return window.error();
  const Result<uint32_t> slot = (*window)->join(settings.first);
  if (!slot) return slot.error();
  return std::unique_ptr<PacketPort>(new CxlPort(std::move(*window), *slot, settings));
}

CxlPort::CxlPort(std::unique_ptr<Window> window, uint32_t slot, const WindowSettings& settings)
    : settings_(settings),
      window_(std::move(window)),
      mapping_(window_->mapping()),
      words_(mapping_.words()),
      handed_over_(window_->handed_over()),
      changes_(words_.changes().count),
      slot_(slot),
      generation_(words_.generation(slot)),
      bell_(words_.bell_of(slot)),
      departures_(words_, slot, counters_),
      arrivals_(words_, window_->slots()),
      lanes_(words_, window_->slots(), window_->holder()) {
  const BackingFile& file = mapping_.file();
  facts_.self = window_->slots().endpoint_of(slot);
  facts_.eid = facts_.self.address;
  facts_.mtu = 64 * 1024;
  facts_.buffer_bytes = ring_lines * uint32_t{line_bytes};
  facts_.lossless = true;
  facts_.backing = {.path = file.path(),
                    .bytes_for_each_peer = uint64_t{2} * ring_bytes,
                    .cure =
                        "close a device that uses it, or open a larger window on both sides: "
                        "cxl:" +
                        file.path() + "-2?size=2G"};
  if (memory() != nullptr) facts_.mapped = window_->segments().mapped();
  const Pages& pages = file.pages();
  facts_.description = "window " + file.path() + ", slot " + std::to_string(slot + 1) + " of " +
                       std::to_string(slot_count) + ", room for " +
                       std::to_string(words_.parts().rings) + " rings, " + pages.text +
                       (pages.advice.empty() ? "" : " (" + pages.advice + ")") +
                       (words_.coherent() ? "" : ", not coherent") +
                       (window_->hand_over() != nullptr ? ", segments handed over" : "");
  facts_.settings = settings_in_effect(settings, *window_, facts_);
}

Result<std::unique_ptr<PacketPort>> CxlPort::beside(const Eid&) {
  if (settings_.hands_over) {
    return Error{Status::unsupported,
                 "segments that are handed over as files (share=segment) are those of one engine. "
                 "Fix: leave out share=segment, or engines"};
  }
  WindowSettings settings = settings_;
  settings.path = mapping_.file().path();
  settings.bytes = 0;  // the window exists
  settings.first = settings_.first.value_or(WindowSettings::First{slot_, generation_});
  return open(settings);
}

CxlPort::~CxlPort() {
  if (!mapping_.file().here()) return;
  departures_.let_go_of_all();
  arrivals_.let_go_of_all();
  window_->slots().leave();
}

void CxlPort::abandon() {
  departures_.forget_all();
  window_->mapping().file().abandon();
}

uint32_t CxlPort::slot_of(const Endpoint& endpoint) const {
  const std::byte* const bytes = endpoint.address.bytes.data();
  if (std::memcmp(bytes, facts_.self.address.bytes.data(), Slots::slot_at) != 0) return no_slot;
  const uint32_t number = static_cast<uint32_t>(bytes[Slots::slot_at]) << 8 |
                          static_cast<uint32_t>(bytes[Slots::slot_at + 1]);
  return number == 0 || number > slot_count || endpoint.port != ub_port ? no_slot : number - 1;
}

PortCounters CxlPort::counters() const {
  PortCounters out = counters_;
  if (window_->hand_over() == nullptr) return out;
  out.malformed += window_->hand_over()->malformed();
  out.refused = window_->hand_over()->refused();
  out.ignored = window_->hand_over()->ignored();
  return out;
}

// ---- outwards

size_t CxlPort::send(std::span<TxFrame* const> frames, Time) {
  for (TxFrame* const frame : frames) {
    pool_.take_back(frame);
    const uint32_t slot = slot_of(frame->to);
    const auto bytes = static_cast<uint32_t>(frame->bytes());
    if (slot == no_slot || bytes - 1 >= most_message_bytes ||
        (!departures_.lead_to(slot) && !connect(slot)) || !departures_.write(slot, *frame, bytes)) {
      ++counters_.send_failures;
    }
  }
  sent_ += frames.size();
  counters_.frames_sent += frames.size();
  notify();
  return frames.size();
}

std::byte* CxlPort::begin(uint32_t slot, uint32_t bytes) {
  if (slot == no_slot || bytes - 1 >= most_message_bytes) return nullptr;
  return departures_.begin(slot, bytes);
}

// The rings belong to one incarnation of the slot's device, and are there while a channel is; a
// device's channel to itself has none.
Laned CxlPort::open_lane(uint32_t slot, const MemoryRange& range, MappedLane& lane) {
  if (memory() == nullptr) return Laned::unmapped;
  if (slot >= slot_count) return Laned::refused;
  if (!departures_.lead_to(slot) && slot != slot_) return Laned::gone;
  const uint32_t generation = slot == slot_ ? generation_ : departures_.generation(slot);
  if (words_.generation(slot) != generation) return Laned::gone;
  return lanes_.open(slot, generation, range, lane);
}

void CxlPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* const frame : frames) pool_.take_back(frame);
}

bool CxlPort::reserve(uint32_t slot, uint32_t bytes) {
  if (slot == no_slot) return false;
  // The channel of a device to itself is set up without a packet, so nothing else would make its
  // ring.
  if (!departures_.lead_to(slot) && (slot != slot_ || !connect(slot))) return false;
  return departures_.reserve(slot, bytes);
}

Ways::State CxlPort::state(uint32_t slot) {
  if (slot == no_slot || mapping_.lost()) return {.gone = true};
  const bool lives = window_->slots().inhabited(slot);
  if (changes() != changes_seen_) look_around();
  // The device itself is never gone.
  if (!departures_.lead_to(slot)) {
    return {.gone = slot != slot_, .no_room = lives && no_room_for_ == slot};
  }
  return {.taken = departures_.taken(slot), .empty = departures_.all_taken(slot), .gone = !lives};
}

// The first packet of a pair makes its rings.
bool CxlPort::connect(uint32_t slot) {
  if (changes() != changes_seen_) look_around();
  if (departures_.lead_to(slot)) return true;
  const Rings::Claim claim = window_->rings().claim_pair(slot_, slot);
  if (claim == Rings::Claim::nobody_there) ++counters_.unreachable;
  if (no_room_for_ == slot) no_room_for_ = no_slot;
  counters_.shortage = shortage_of(claim);
  if (counters_.shortage != Shortage::none) no_room_for_ = slot;
  if (claim != Rings::Claim::made) return false;
  look_around();
  return departures_.lead_to(slot);
}

// ---- inwards

size_t CxlPort::receive(std::span<RxFrame> frames, Time now) {
  if (changes() != changes_seen_) look_around();
  if (handed_over_ != nullptr && handed_over_->has_work(now)) [[unlikely]]
    handed_over_->handle_notifications();
  if (now >= lanes_.due()) [[unlikely]]
    lanes_.look(now);
  if (arrivals_.quiet()) return 0;
  return arrivals_.receive(frames, bell_.drowsy(), counters_);
}

// ---- which rings are this device's

// Looks at all slots and rings, because one of them has a new owner.
void CxlPort::look_around() {
  changes_seen_ = changes();
  // The slot is another device's: the window was written over, and nothing in it is trusted.
  if (words_.generation(slot_) != generation_) {
    arrivals_.forget_all();
    departures_.forget_all();
    return;
  }
  departures_.let_go_of_ended();
  arrivals_.note_ended();
  if (handed_over_ != nullptr) handed_over_->forget_the_gone();
  for (uint32_t ring = 0; ring < words_.parts().rings; ++ring) {
    const RingOwner owner = owner_of(words_, ring);
    if (owner.serial != 0 && owner.from < slot_count && owner.to < slot_count) look_at(ring, owner);
  }
}

// This includes rings whose other end left before this device first looked: a ring cannot be used
// by others until this end, too, has given it up.
void CxlPort::look_at(uint32_t ring, const RingOwner& owner) {
  const bool receives = owner.to == slot_ && owner.to_generation == generation_;
  // If messages of an earlier incarnation have not been released yet, the next pass tries again.
  if (receives && !arrivals_.add(ring, owner)) changes_seen_ = changes() - 1;
  if (owner.from == slot_ && owner.from_generation == generation_) departures_.add(ring, owner);
}

}  // namespace urma::drivers::cxl
