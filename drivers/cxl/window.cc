#include "drivers/cxl/window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bell.h"
#include "base/file_system.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {
namespace {

constexpr uint32_t most_not_let_go = 4;

}  // namespace

Window::Window(Window&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      not_inherited_(std::move(other.not_inherited_)),
      owner_(other.owner_),
      mapped_(std::exchange(other.mapped_, nullptr)),
      base_(other.base_),
      caches_(std::move(other.caches_)),
      bytes_(other.bytes_),
      id_(other.id_),
      parts_(other.parts_),
      own_(std::exchange(other.own_, nobody)),
      own_generation_(other.own_generation_),
      is_file_(other.is_file_),
      pages_(std::move(other.pages_)),
      guard_(std::move(other.guard_)),
      changes_(other.changes_),
      places_(other.places_),
      records_(other.records_),
      segments_(other.segments_),
      own_hold_(other.own_hold_),
      moved_(std::move(other.moved_)),
      hand_over_(std::move(other.hand_over_)),
      own_told_(other.own_told_),
      told_seen_(other.told_seen_) {}

Window::~Window() {
  hand_over_.reset();
  guard_ = Guard();
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) close(descriptor_);
}

Error Window::because(Status status, std::string_view why, std::string_view fix) const {
  return {status,
          "cxl: the window " + path_ + " " + std::string(why) + ". Fix: " + std::string(fix)};
}

Error Window::no_room(std::string_view what, uint64_t needed_bytes, int why) const {
  const FileSystem at = descriptor_ < 0 ? file_system_of(path_) : file_system_of(descriptor_);
  const Shortage shortage = explain_shortage(at, needed_bytes, why);
  return because(Status::no_resources, std::string(what) + ": " + shortage.why,
                 shortage.cure + ", or choose another file system: cxl:/another/path");
}

Error Window::cannot_lock(const WindowLock& lock) const {
  if (lock.somebody_has_it()) {
    return because(Status::io_error,
                   "is locked by a process that does not go on (stopped while it joined?)",
                   "continue or end that process (see /proc/locks), or use another window");
  }
  return because(Status::unsupported,
                 std::string("cannot be locked: ") + std::strerror(lock.why_not()),
                 "put it on a file system that has locks (/dev/shm has)");
}

// Now, so that no memory left is an error here and no fault later. What has none to take (a device)
// or cannot take it in advance is left alone: writing there might undo what others write.
int Window::take_memory(uint64_t at, uint64_t bytes) const {
  if (!is_file_) return 0;
  int result = -1;
  do {
    result = fallocate(descriptor_, 0, static_cast<off_t>(at), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV ? 0 : errno;
}

// ---- places

// Whether its owner lives. The kernel does not tell us of our own locks.
bool Window::lives(uint32_t place) const {
  return place == own_ || place_is_locked(descriptor_, place);
}

bool Window::here() const { return owner_ == getpid(); }

void Window::abandon() {
  owner_ = -1;
  not_inherited_ = NotInherited();
  close(std::exchange(descriptor_, -1));
}

void Window::changed() { tell(changes_->count, changes() + 1); }

// With the lock.
void Window::end_place(uint32_t place) {
  tell(places_[place].record.generation, generation(place) + 1);
  tell(places_[place].hold.segment, uint32_t{0});
  HandOver::remove(path_, place);
  changed();
  tell_partners(place);
}

// Those who share a ring with somebody who has gone: until they let go of it, nobody else gets it.
void Window::tell_partners(uint32_t place) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t ended = generation(place) - 1;
  for (uint32_t ring = 0; ring < parts_.rings; ++ring) {
    const Ownership owner = ownership(ring);
    const bool sent = owner.from == place && owner.from_generation == ended;
    const bool received = owner.to == place && owner.to_generation == ended;
    const uint32_t partner = sent ? owner.to : owner.from;
    if ((!sent && !received) || partner >= places) continue;
    bell_of(partner).ring();
  }
}

void Window::release_dead() {
  for (uint32_t place = 0; place < places; ++place) {
    if (generation(place) % 2 == 1 && !lives(place)) end_place(place);
  }
}

Endpoint Window::endpoint_of(uint32_t place) const {
  Endpoint out;
  for (size_t i = 0; i < sizeof window_prefix; ++i) {
    out.address.bytes[i] = std::byte{window_prefix[i]};
  }
  std::memcpy(out.address.bytes.data() + sizeof window_prefix, &id_, sizeof id_);
  out.address.bytes[place_at] = static_cast<std::byte>((place + 1) >> 8);
  out.address.bytes[place_at + 1] = static_cast<std::byte>(place + 1);
  out.port = ub_port;
  return out;
}

Result<uint32_t> Window::join() {
  const WindowLock lock(descriptor_, WindowLock::patience);
  if (!lock.held()) return cannot_lock(lock);
  release_dead();
  for (uint32_t place = 0; place < places; ++place) {
    if (generation(place) % 2 == 1) continue;
    // Generations may have been written over; the lock is what counts.
    if (!lock_place(descriptor_, place)) continue;
    if (auto listening = listen(place); !listening) {
      unlock_place(descriptor_, place);
      // Somebody has put something else there, which is not ours to remove.
      if (listening.error().status == Status::address_in_use) continue;
      return listening.error();
    }
    bell_of(place).awake();
    own_generation_ = generation(place) | 1;
    tell(places_[place].record.generation, own_generation_);
    changed();
    own_ = place;
    own_hold_ = &places_[place].hold;
    tell(own_hold_->segment, uint32_t{0});
    return place;
  }
  return because(Status::no_resources,
                 "has no free place: " + std::to_string(places) + " devices are open on it",
                 "close some, or use another window: cxl:/dev/shm/NAME");
}

void Window::leave(uint32_t place) {
  const WindowLock lock(descriptor_, WindowLock::patience);
  // If the lock cannot be had, the next one who comes finds us gone.
  if (lock.held()) end_place(place);
  if (hand_over_ != nullptr) hand_over_->stop_listening();
  own_ = nobody;
  unlock_place(descriptor_, place);
  if (!lock.held() || !is_file_) return;
  release_dead();
  if (lost()) return;
  for (uint32_t other = 0; other < places; ++other) {
    if (generation(other) % 2 == 1) return;
  }
  // The last one switches off the light: the rings' memory goes back to the system.
  const uint64_t from = parts_.rings_at;
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
            static_cast<off_t>(bytes_ - from));
}

bool Window::inhabited(uint32_t place) {
  if (generation(place) % 2 == 0) return false;
  if (lives(place)) return true;
  const WindowLock lock(descriptor_);
  if (lock.held() && generation(place) % 2 == 1 && !lives(place)) end_place(place);
  return false;
}

// ---- rings

// Nobody's while it changes: whoever changes it says so when it is done.
Window::Ownership Window::ownership(uint32_t ring) const {
  const RingRecord& record = records_[ring];
  Ownership out{};
  out.serial = seen(record.serial);
  out.from = record.from.load(std::memory_order_relaxed);
  out.to = record.to.load(std::memory_order_relaxed);
  out.from_generation = record.from_generation.load(std::memory_order_relaxed);
  out.to_generation = record.to_generation.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint32_t again = seen(record.serial);
  if ((out.serial & changing) != 0 || again != out.serial) out.serial = 0;
  return out;
}

Ring& Window::ring_at(uint32_t ring) const {
  return *reinterpret_cast<Ring*>(base_ + parts_.rings_at + uint64_t{ring} * ring_bytes);
}

// With the lock: whether nobody will touch it any more. Who is gone does not; its memory may be
// gone as well, so it is looked at last.
bool Window::free_again(uint32_t ring) const {
  const Ownership owner = ownership(ring);
  if (owner.serial == 0 || owner.from >= places || owner.to >= places) return true;
  const bool sender_gone = generation(owner.from) != owner.from_generation;
  const bool receiver_gone = generation(owner.to) != owner.to_generation;
  if (sender_gone && receiver_gone) return true;
  const RingControl& control = ring_at(ring).control;
  if (!sender_gone && seen(control.sender.let_go) != owner.serial) return false;
  return receiver_gone || seen(control.receiver.let_go) == owner.serial;
}

std::optional<uint32_t> Window::free_ring(uint32_t after) const {
  for (uint32_t ring = after; ring < parts_.rings; ++ring) {
    if (free_again(ring)) return ring;
  }
  return std::nullopt;
}

bool Window::take_ring_memory(uint32_t ring) const {
  return take_memory(parts_.rings_at + uint64_t{ring} * ring_bytes, ring_bytes) == 0;
}

void Window::give(uint32_t ring, uint32_t from, uint32_t to) {
  RingRecord& record = records_[ring];
  Ring& memory = ring_at(ring);
  const uint32_t before = seen(record.serial) & ~changing;
  const uint32_t serial = (before + 1) & ~changing;
  tell(record.serial, before | changing);
  std::atomic_thread_fence(std::memory_order_release);
  tell(memory.control.receiver.taken, uint64_t{0});
  tell(memory.control.receiver.let_go, uint32_t{0});
  tell(memory.control.sender.let_go, uint32_t{0});
  tell(memory.lines[0].mark, nothing_yet);
  record.from.store(from, std::memory_order_relaxed);
  record.to.store(to, std::memory_order_relaxed);
  record.from_generation.store(generation(from), std::memory_order_relaxed);
  record.to_generation.store(generation(to), std::memory_order_relaxed);
  tell(record.serial, serial == 0 ? 1 : serial);
}

Window::Claim Window::claim_pair(uint32_t from, uint32_t to) {
  const WindowLock lock(descriptor_);
  if (!lock.held()) return Claim::not_now;
  if (to >= places || generation(to) % 2 == 0) return Claim::nobody_there;
  if (!lives(to)) {
    end_place(to);
    return Claim::nobody_there;
  }
  uint32_t not_let_go = 0;
  for (uint32_t ring = 0; ring < parts_.rings; ++ring) {
    const Ownership owner = ownership(ring);
    if (owner.serial == 0 || owner.from != from || owner.to != to) continue;
    const bool current =
        owner.from_generation == generation(from) && owner.to_generation == generation(to);
    // Perhaps the other one was quicker.
    if (current) return Claim::made;
    // A partner that does not let go of what the dead had here does not get more and more.
    if (!free_again(ring) && ++not_let_go > most_not_let_go) return Claim::not_now;
  }
  const std::optional<uint32_t> there = free_ring(0);
  const std::optional<uint32_t> back = there && from != to ? free_ring(*there + 1) : there;
  if (!back) {
    // Perhaps the dead have some; those who shared them are told, and let go in a moment.
    release_dead();
    return Claim::no_ring;
  }
  if (!take_ring_memory(*there) || !take_ring_memory(*back)) return Claim::no_memory;
  if (from != to) give(*back, to, from);
  give(*there, from, to);
  changed();
  return Claim::made;
}

}  // namespace urma::drivers::cxl
