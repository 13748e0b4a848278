#include "drivers/cxl/cxl_port.h"

#include <algorithm>
#include <utility>

namespace urma::drivers::cxl {
namespace {

Ways::Shortage shortage_of(Window::Claim claim) {
  if (claim == Window::Claim::no_ring) return Ways::Shortage::ways;
  return claim == Window::Claim::no_memory ? Ways::Shortage::memory : Ways::Shortage::none;
}

}  // namespace

Result<std::unique_ptr<PacketPort>> CxlPort::open(const WindowSettings& settings) {
  Result<Window> window = Window::open(settings);
  if (!window) return window.error();
  const Result<uint32_t> place = window->join();
  if (!place) return place.error();
  return std::unique_ptr<PacketPort>(new CxlPort(std::move(*window), *place, settings));
}

CxlPort::CxlPort(Window window, uint32_t place, const WindowSettings& settings)
    : window_(std::move(window)),
      place_(place),
      generation_(window_.generation(place)),
      bell_(window_.bell_of(place)),
      outbound_(std::make_unique<Outbound[]>(places)),
      inbound_(std::make_unique<Inbound[]>(most_inbound)) {
  sources_.reserve(most_inbound);
  facts_.self = window_.endpoint_of(place);
  facts_.eid = facts_.self.address;
  facts_.mtu = 64 * 1024;
  facts_.buffer_bytes = ring_lines * uint32_t{line_bytes};
  facts_.lossless = true;
  facts_.backing = {.path = window_.path(),
                    .bytes_for_each_peer = uint64_t{2} * ring_bytes,
                    .cure =
                        "close a device that uses it, or open a larger window on both sides: "
                        "cxl:" +
                        window_.path() + "-2?size=2G"};
  if (memory() != nullptr) facts_.mapped = window_.mapped();
  const Pages& pages = window_.pages();
  facts_.description = "window " + window_.path() + ", place " + std::to_string(place + 1) +
                       " of " + std::to_string(places) + ", room for " +
                       std::to_string(window_.rings()) + " rings, " + pages.text +
                       (pages.advice.empty() ? "" : " (" + pages.advice + ")") +
                       (window_.coherent() ? "" : ", not coherent") +
                       (window_.hands_over() != nullptr ? ", segments handed over" : "");
  state_settings(settings);
}

// Everything that was chosen, and by whom.
void CxlPort::state_settings(const WindowSettings& settings) {
  SettingList& out = facts_.settings;
  out = settings.options;
  const bool named = !settings.path.empty();
  out.push_back({"window", window_.path(), named ? Origin::device_string : Origin::by_default,
                 named ? "" : "this user's own", "the file or device that all here map"});
  out.push_back({"window_size", size_text(window_.bytes()),
                 settings.bytes != 0 ? Origin::device_string : Origin::system,
                 settings.bytes != 0 ? "all of it taken" : "as it was made; taken as it is used",
                 "how large it is, in bytes"});
  out.push_back({"segment_memory",
                 size_text(uint64_t{window_.parts().granules} * window_.parts().granule_bytes),
                 Origin::driver, "half of a window of 8M or more",
                 "what is for segments that all here map, in bytes"});
  out.push_back({"coherent", yes_or_no(window_.coherent()),
                 settings.coherent ? Origin::device_string : Origin::system,
                 settings.coherent ? "" : "as it was made",
                 "whether processors keep its memory coherent; if not, nothing is mapped"});
  out.push_back({"pages", window_.pages().text, Origin::system, window_.pages().advice,
                 "what the window is mapped with"});
  out.push_back(
      {"share", window_.hands_over() != nullptr ? "segment" : "window",
       window_.hands_over() != nullptr ? Origin::device_string : Origin::by_default,
       window_.hands_over() != nullptr ? "sockets beside the window" : "all in the window",
       "where segments lie: each in a file of its own, handed over, or in the window"});
  out.push_back({"place", std::to_string(place_ + 1) + " of " + std::to_string(places),
                 Origin::drawn, "the first that was free", "which of its devices this one is"});
  out.push_back({"rings", std::to_string(window_.rings()), Origin::driver, "follows from the size",
                 "room for one way between two devices each"});
  out.push_back({"address", to_string(facts_.self), Origin::driver,
                 "the window's number, the place", "where others reach this device"});
  out.push_back({"eid", to_string(facts_.eid), Origin::driver, "the address", "who it is"});
  out.push_back({"mtu", size_text(facts_.mtu), Origin::driver, "a slice is one packet",
                 "largest payload of a packet, in bytes"});
  out.push_back({"receive_buffer", size_text(facts_.buffer_bytes), Origin::driver, "a ring",
                 "what waits for this device from each other one, in bytes"});
}

CxlPort::~CxlPort() {
  if (!window_.here()) return;
  for (uint32_t place = 0; place < places; ++place) let_go(outbound_[place]);
  while (!sources_.empty()) let_go(inbound_[sources_.back()]);
  window_.leave(place_);
}

uint32_t CxlPort::place_of(const Endpoint& endpoint) const {
  const std::byte* const bytes = endpoint.address.bytes.data();
  if (std::memcmp(bytes, facts_.self.address.bytes.data(), Window::place_at) != 0) return places;
  const uint32_t number = static_cast<uint32_t>(bytes[Window::place_at]) << 8 |
                          static_cast<uint32_t>(bytes[Window::place_at + 1]);
  return number == 0 || number > places || endpoint.port != ub_port ? places : number - 1;
}

PortCounters CxlPort::counters() const {
  PortCounters out = counters_;
  if (window_.hands_over() == nullptr) return out;
  out.malformed += window_.hands_over()->malformed();
  out.refused = window_.hands_over()->refused();
  out.unheard = window_.hands_over()->unheard();
  return out;
}

// ---- outwards

size_t CxlPort::send(std::span<TxFrame* const> frames, Time) {
  for (TxFrame* const frame : frames) {
    pool_.take_back(frame);
    const uint32_t place = place_of(frame->to);
    const auto bytes = static_cast<uint32_t>(frame->bytes());
    if (place == places || bytes - 1 >= most_message_bytes ||
        (!outbound_[place].ring && !connect(place)) ||
        !outbound_[place].ring.write(*frame, bytes)) {
      ++counters_.send_failures;
      continue;
    }
    touch(place);
  }
  sent_ += frames.size();
  counters_.frames_sent += frames.size();
  notify();
  return frames.size();
}

std::byte* CxlPort::begin(uint32_t place, uint32_t bytes) {
  if (place == places || bytes - 1 >= most_message_bytes) return nullptr;
  RingWriter& ring = outbound_[place].ring;
  if (!ring || ring.promised()) return nullptr;
  begun_ = place;
  return ring.begin(bytes);
}

void CxlPort::end() {
  RingWriter& ring = outbound_[begun_].ring;
  ring.end();
  ring.written();
  touch(begun_);
  ++counters_.frames_sent;
}

void CxlPort::touch(uint32_t place) {
  if (std::exchange(outbound_[place].touched, true)) return;
  if (touched_count_ == touched_.size()) notify();
  touched_[touched_count_++] = place;
}

void CxlPort::notify() {
  if (touched_count_ == 0) return;
  ++counters_.calls_sent;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const uint32_t place : std::span(touched_).first(std::exchange(touched_count_, 0))) {
    Outbound& outbound = outbound_[place];
    outbound.touched = false;
    if (outbound.ring) outbound.ring.written();
    window_.bell_of(place).ring(outbound.rung, place_ + 1);
  }
}

void CxlPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* const frame : frames) pool_.take_back(frame);
}

bool CxlPort::reserve(uint32_t place, uint32_t bytes) {
  if (place == places) return false;
  // A channel to oneself is set up without a packet that would make the ring.
  if (!outbound_[place].ring && (place != place_ || !connect(place))) return false;
  return outbound_[place].ring.reserve(bytes);
}

Ways::State CxlPort::state(uint32_t place) {
  if (place == places || window_.lost()) return {.gone = true};
  const bool lives = window_.inhabited(place);
  if (window_.changes() != changes_seen_) look_around();
  Outbound& outbound = outbound_[place];
  // Oneself is never gone.
  if (!outbound.ring) return {.gone = place != place_, .no_room = lives && no_room_for_ == place};
  return {.taken = outbound.ring.taken(), .empty = outbound.ring.empty(), .gone = !lives};
}

// The first packet of a pair makes its rings.
bool CxlPort::connect(uint32_t place) {
  if (window_.changes() != changes_seen_) look_around();
  if (outbound_[place].ring) return true;
  const Window::Claim claim = window_.claim_pair(place_, place);
  if (claim == Window::Claim::nobody_there) ++counters_.unreachable;
  if (no_room_for_ == place) no_room_for_ = places;
  counters_.shortage = shortage_of(claim);
  if (counters_.shortage != Shortage::none) no_room_for_ = place;
  if (claim != Window::Claim::made) return false;
  look_around();
  return static_cast<bool>(outbound_[place].ring);
}

// ---- inwards

size_t CxlPort::receive(std::span<RxFrame> frames, Time now) {
  if (window_.changes() != changes_seen_) look_around();
  if (window_.told(now)) [[unlikely]]
    window_.take_what_is_told();
  if (sources_.empty()) return 0;
  if (sources_.size() == 1) {
    // As a rule there is one peer, and nothing from it.
    const Inbound& only = inbound_[sources_[0]];
    if (!only.ring.any() && !only.ended) return 0;
  }
  size_t count = 0;
  uint32_t bytes = 0;
  ++counters_.calls_received;
  // Where something came from last, then some of the others in turn; before a sleep, all.
  const size_t looks =
      bell_.drowsy() ? sources_.size() : std::min<size_t>(sources_.size(), rings_at_once);
  size_t at = latest_;
  const auto full = [&] { return count == frames.size() || bytes >= bytes_at_once; };
  for (size_t look = 0; look <= looks && !sources_.empty() && !full(); ++look) {
    if (at >= sources_.size()) at = 0;
    if (read_from(inbound_[sources_[at]], frames, count, bytes)) latest_ = at;
    if (sources_.size() <= 1) break;
    at = ++next_look_ >= sources_.size() ? next_look_ = 0 : next_look_;
  }
  // Nobody can fill all bursts.
  if (full()) ++latest_;
  counters_.frames_received += count;
  return count;
}

bool CxlPort::read_from(Inbound& inbound, std::span<RxFrame> frames, size_t& count,
                        uint32_t& bytes) {
  const size_t before = count;
  const auto cookie = static_cast<uint32_t>(&inbound - inbound_.get());
  while (count < frames.size() && bytes < bytes_at_once) {
    uint32_t message_bytes = 0;
    const std::byte* const message = inbound.ring.read(message_bytes);
    if (message == nullptr) break;
    frames[count++] = {message, message_bytes, cookie, &inbound.from};
    bytes += message_bytes;
  }
  inbound.held += static_cast<uint32_t>(count - before);
  if (inbound.ring.broken() && !std::exchange(inbound.counted, true)) ++counters_.malformed;
  if (inbound.ended && inbound.held == 0) let_go(inbound);
  return count > before;
}

// What was read of a ring is given back together.
void CxlPort::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) {
    Inbound& inbound = inbound_[frame.cookie];
    if (--inbound.held == 0) inbound.ring.release(inbound.ring.next());
  }
}

// ---- who is there

// Something has changed hands: which rings are ours now?
void CxlPort::look_around() {
  changes_seen_ = window_.changes();
  // Our place is another one's: the window was written over, and nothing here can be believed.
  if (window_.generation(place_) != generation_) {
    while (!sources_.empty()) forget(inbound_[sources_.back()]);
    for (uint32_t place = 0; place < places; ++place) outbound_[place] = {};
    return;
  }
  for (uint32_t place = 0; place < places; ++place) {
    Outbound& outbound = outbound_[place];
    if (outbound.ring && window_.generation(place) != outbound.to_generation) let_go(outbound);
  }
  for (const uint32_t source : sources_) {
    Inbound& inbound = inbound_[source];
    const uint32_t place = place_of(inbound.from);
    inbound.ended = inbound.ended || window_.generation(place) != inbound.from_generation;
  }
  window_.forget_the_gone();
  for (uint32_t ring = 0; ring < window_.rings(); ++ring) {
    const Window::Ownership owner = window_.ownership(ring);
    if (owner.serial != 0 && owner.from < places && owner.to < places) look_at(ring, owner);
  }
}

// Also at rings whose other end has gone before we ever looked: they are held by us until we let
// go.
void CxlPort::look_at(uint32_t ring, const Window::Ownership& owner) {
  if (owner.to == place_ && owner.to_generation == generation_) add_inbound(ring, owner);
  if (owner.from != place_ || owner.from_generation != generation_) return;
  Outbound& outbound = outbound_[owner.to];
  const bool lives = window_.generation(owner.to) == owner.to_generation;
  if (lives && outbound.ring) return;
  if (!lives) {
    return mark_let_go(ring, owner.serial, window_.ring_at(ring).control.sender.let_go);
  }
  outbound = {.ring = RingWriter(window_.ring_at(ring), marked_[owner.to], window_.caches()),
              .index = ring,
              .serial = owner.serial,
              .to_generation = owner.to_generation};
}

void CxlPort::add_inbound(uint32_t ring, const Window::Ownership& owner) {
  for (const uint32_t source : sources_) {
    const Inbound& known = inbound_[source];
    if (known.index == ring && known.serial == owner.serial) return;
  }
  const auto& gone = window_.ring_at(ring).control.receiver.let_go;
  if (window_.seen(gone) == owner.serial) return;
  if (sources_.size() == most_inbound || !may_add(ring, owner)) return;
  uint32_t free = 0;
  while (inbound_[free].index != none) ++free;
  inbound_[free] = {.ring = RingReader(window_.ring_at(ring), window_.caches()),
                    .index = ring,
                    .serial = owner.serial,
                    .from_generation = owner.from_generation,
                    .ended = ended(owner),
                    .from = window_.endpoint_of(owner.from)};
  sources_.push_back(free);
}

// A ring has one reader, and a place one life: what an earlier one left unread nobody waits for,
// and it must not be taken for the new one's. Whichever of the two rings was found first.
bool CxlPort::may_add(uint32_t ring, const Window::Ownership& owner) {
  const Endpoint from = window_.endpoint_of(owner.from);
  for (size_t i = sources_.size(); i-- > 0;) {
    Inbound& known = inbound_[sources_[i]];
    if (known.index != ring && !(known.from == from)) continue;
    if (known.index != ring && ended(owner)) {
      mark_let_go(ring, owner.serial, window_.ring_at(ring).control.receiver.let_go);
      return false;
    }
    if (known.held > 0) {
      // Once more when that has been released.
      changes_seen_ = window_.changes() - 1;
      return false;
    }
    known.index == ring ? forget(known) : let_go(known);
  }
  return true;
}

void CxlPort::let_go(Outbound& outbound) {
  if (!outbound.ring) return;
  mark_let_go(outbound.index, outbound.serial,
              window_.ring_at(outbound.index).control.sender.let_go);
  outbound = {};
}

void CxlPort::let_go(Inbound& inbound) {
  mark_let_go(inbound.index, inbound.serial,
              window_.ring_at(inbound.index).control.receiver.let_go);
  forget(inbound);
}

// Not over the mark of whoever has the ring now.
void CxlPort::mark_let_go(uint32_t ring, uint32_t serial, std::atomic<uint32_t>& mark) const {
  if (window_.ownership(ring).serial == serial) window_.tell(mark, serial);
}

void CxlPort::forget(Inbound& inbound) {
  const auto self = static_cast<uint32_t>(&inbound - inbound_.get());
  inbound.index = none;
  std::erase(sources_, self);
}

}  // namespace urma::drivers::cxl
