// Which memory of a window is whose, and who is using it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file_system.h"
#include "drivers/cxl/window.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {
namespace {

// Both values are compared whole: the time says nothing of them.
bool opens(const SegmentRecord& record, TokenValue token) {
  const uint32_t newer = record.token.load(std::memory_order_relaxed) ^ number(token);
  const uint32_t older = record.older_token.load(std::memory_order_relaxed) ^ number(token);
  const uint32_t unchecked = record.unchecked.load(std::memory_order_relaxed);
  return (static_cast<uint32_t>(newer == 0) | static_cast<uint32_t>(older == 0) | unchecked) != 0;
}

}  // namespace

// With the lock: how many granules this one and those behind it are that somebody has. What nobody
// has any more, and nobody uses, is free from now on.
uint32_t Window::granules_taken(uint32_t segment) {
  SegmentRecord& record = segments_[segment];
  const uint32_t granules =
      std::min(record.granules.load(std::memory_order_relaxed), parts_.granules - segment);
  if (granules == 0) return 0;
  const uint32_t owner = record.owner.load(std::memory_order_relaxed);
  if (owner < places &&
      generation(owner) == record.owner_generation.load(std::memory_order_relaxed)) {
    return granules;
  }
  close_to_all(record);
  for (uint32_t place = 0; place < places; ++place) {
    if (holds(place, segment)) return granules;
  }
  record.granules.store(0, std::memory_order_relaxed);
  return 0;
}

Window::Taken Window::take(uint64_t bytes, Lease& lease) {
  const uint64_t wanted = granules_for(bytes);
  if (wanted == 0 || wanted > parts_.granules || !owns_place()) return Taken::no_room;
  const WindowLock lock(descriptor_);
  if (!lock.held()) return Taken::not_now;
  release_dead();
  uint32_t free = 0;
  for (uint32_t granule = 0; granule < parts_.granules && free < wanted;) {
    const uint32_t taken = granules_taken(granule);
    free = taken == 0 ? free + 1 : 0;
    granule += std::max(taken, 1u);
    lease.number = granule - free;
  }
  if (free < wanted) return Taken::no_room;
  SegmentRecord& record = segments_[lease.number];
  close_to_all(record);
  record.bytes.store(bytes, std::memory_order_relaxed);
  record.owner.store(own_, std::memory_order_relaxed);
  record.owner_generation.store(generation(own_), std::memory_order_relaxed);
  record.granules.store(static_cast<uint32_t>(wanted), std::memory_order_relaxed);
  lease.address = address_of(lease.number, 0);
  lease.base = memory_of(lease.number);
  lease.bytes = bytes;
  if (hand_over_ == nullptr) return Taken::taken;
  lease.base = hand_over_->own().reserve(lease.number, bytes);
  if (lease.base != nullptr) return Taken::taken;
  record.granules.store(0, std::memory_order_relaxed);
  return Taken::no_room;
}

// Its size is what we were given, not what the window says now: others' memory lies beside it.
bool Window::punch(const Lease& lease) const {
  // Of huge pages only whole ones are given back, and the others keep what is in them.
  if (hand_over_ != nullptr || !is_file_ || pages_.bytes > page_bytes || !owns_place())
    return false;
  return fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(lease.base - base_),
                   static_cast<off_t>(mapped_bytes(lease))) == 0;
}

// A segment that is not mapped is written by packets, but without its two rings a pair of devices
// cannot exchange anything: so segments leave memory for the next few.
bool Window::leaves_room_for_rings() const {
  constexpr uint64_t kept_bytes = uint64_t{4} * 2 * ring_bytes;
  struct stat file {};
  struct statfs room {};
  if (!is_file_ || fstat(descriptor_, &file) != 0 || fstatfs(descriptor_, &room) != 0) return true;
  constexpr uint64_t block_bytes = 512;
  const bool all_taken = static_cast<uint64_t>(file.st_blocks) * block_bytes >= bytes_;
  const uint64_t free_bytes =
      static_cast<uint64_t>(room.f_bavail) * static_cast<uint64_t>(room.f_bsize);
  return all_taken || room.f_blocks == 0 || free_bytes >= kept_bytes;
}

bool Window::prepare(const Lease& lease) {
  if (hand_over_ != nullptr) return owns_place() && hand_over_->own().make(lease.number);
  const bool emptied = punch(lease);
  const auto at = static_cast<uint64_t>(lease.base - base_);
  if (!owns_place() || take_memory(at, mapped_bytes(lease)) != 0) return false;
  if (!leaves_room_for_rings()) {
    punch(lease);
    return false;
  }
  if (!emptied) std::memset(lease.base, 0, lease.bytes);
  return true;
}

void Window::grant(const Lease& lease, const Grant& grant) {
  if (!owns_place()) return;
  SegmentRecord& record = segments_[lease.number];
  record.token_id.store(number(grant.id), std::memory_order_relaxed);
  // While it is open, too: whoever reads one of them now finds a token that is good.
  const bool secret = hand_over_ != nullptr;  // whoever maps the window reads its records
  record.older_token.store(secret ? 0 : number(grant.older), std::memory_order_relaxed);
  record.token.store(secret ? 0 : number(grant.token), std::memory_order_relaxed);
  record.unchecked.store(grant.checked ? 0 : 1, std::memory_order_relaxed);
  record.rights.store(static_cast<uint32_t>(grant.rights), std::memory_order_relaxed);
  record.atomics.store(static_cast<uint32_t>(grant.atomics), std::memory_order_relaxed);
  const uint32_t file = hand_over_ != nullptr ? hand_over_->own().grant(lease.number, grant) : 0;
  record.file.store(file, std::memory_order_relaxed);
  // Of what is handed to nobody: in the window, at its number, lies nothing of it.
  if (hand_over_ != nullptr && file == 0) return;
  const uint64_t epoch = record.epoch.load(std::memory_order_relaxed);
  // Open already: to who holds it nothing has changed.
  record.epoch.store(is_open(epoch) ? epoch : epoch + 1, std::memory_order_release);
}

void Window::revoke(const Lease& lease) {
  if (hand_over_ != nullptr) hand_over_->own().close(lease.number);
  if (owns_place()) close_to_all(segments_[lease.number]);
}

void Window::revoke_all() {
  if (hand_over_ != nullptr) hand_over_->own().close_all();
  if (!owns_place()) return;
  for (uint32_t segment = 0; segment < parts_.granules; ++segment) {
    SegmentRecord& record = segments_[segment];
    const bool ours = record.granules.load(std::memory_order_relaxed) > 0 &&
                      record.owner.load(std::memory_order_relaxed) == own_ &&
                      record.owner_generation.load(std::memory_order_relaxed) == own_generation_;
    if (ours) close_to_all(record);
  }
}

bool Window::holds(uint32_t place, uint32_t segment) const {
  return places_[place].hold.segment.load(std::memory_order_acquire) == segment + 1;
}

// The dead hold nothing.
bool Window::held(const Lease& lease) {
  if (!here()) return false;
  for (uint32_t place = 0; place < places; ++place) {
    if (holds(place, lease.number) && inhabited(place)) return true;
  }
  return false;
}

// Private pages take the place of the file's in one step, so that the owner's address always has
// memory. Parts of huge pages cannot be replaced, and a device's pages are what they are.
bool Window::move(const Lease& lease) {
  const bool movable =
      hand_over_ != nullptr ? here() : is_file_ && pages_.bytes <= page_bytes && owns_place();
  if (!movable) return false;
  const size_t bytes = mapped_bytes(lease);
  void* const fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  std::memcpy(fresh, lease.base, lease.bytes);
  if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, lease.base) == MAP_FAILED) {
    munmap(fresh, bytes);
    return false;
  }
  moved_[lease.number] = true;
  return true;
}

bool Window::restore(const Lease& lease) {
  if (hand_over_ != nullptr) {
    hand_over_->own().release(lease.number);
    return true;
  }
  if (!moved_[lease.number]) return true;
  // Zeros of our own stay where a file was that is gone.
  if (!owns_place()) return false;
  const Result<int> again = open_path();
  struct stat ours {};
  struct stat theirs {};
  const bool same = again && fstat(descriptor_, &ours) == 0 && fstat(*again, &theirs) == 0 &&
                    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
  // As `map` does: not by the opening that has our locks, which this mapping would keep alive.
  void* const at = same ? mmap(lease.base, mapped_bytes(lease), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_NORESERVE | MAP_FIXED, *again, lease.base - base_)
                        : MAP_FAILED;
  if (again) close(*again);
  if (at == MAP_FAILED) return false;
  moved_[lease.number] = false;
  return true;
}

void Window::empty(const Lease& lease) { punch(lease); }

// Whoever needs it looks first whether somebody holds it still.
void Window::give_back(const Lease& lease) {
  OwnFiles::Places users{};
  if (hand_over_ != nullptr) {
    users = hand_over_->own().users(lease.number);
    hand_over_->own().drop(lease.number);
    moved_[lease.number] = false;
  }
  if (!owns_place()) return;
  segments_[lease.number].owner.store(places, std::memory_order_release);
  // It is memory for as long as one of them maps it, and they may sleep.
  for (uint32_t place = 0; place < places; ++place) {
    if (OwnFiles::among(users, place)) tell_of_socket(place);
  }
}

Quarantined Window::quarantined(uint32_t segment, uint32_t place) const {
  return {.address = address_of(segment, 0),
          .bytes = segments_[segment].bytes.load(std::memory_order_relaxed),
          .held_by = endpoint_of(place)};
}

// Files of ours that others were given, which still are what their owner has.
size_t Window::left_over(std::span<Quarantined> out) const {
  size_t count = 0;
  for (uint32_t segment = 0; segment < parts_.granules; ++segment) {
    if (!hand_over_->own().left_over(segment) || moved_[segment]) continue;
    const OwnFiles::Places& users = hand_over_->own().users(segment);
    for (uint32_t place = 0; place < places && count < out.size(); ++place) {
      if (OwnFiles::among(users, place)) out[count++] = quarantined(segment, place);
    }
  }
  return count;
}

// Everybody holds one at most. Who is only looking at it lets go in a moment.
size_t Window::quarantined(std::span<Quarantined> out) {
  if (!owns_place()) return 0;
  size_t count = hand_over_ != nullptr ? left_over(out) : 0;
  for (uint32_t place = 0; place < places && count < out.size(); ++place) {
    const uint32_t held = places_[place].hold.segment.load(std::memory_order_acquire);
    if (held == 0 || held > parts_.granules) continue;
    const SegmentRecord& record = segments_[held - 1];
    const bool closed = !is_open(record.epoch.load(std::memory_order_acquire));
    if (!closed || record.granules.load(std::memory_order_relaxed) == 0) continue;
    if (!inhabited(place)) continue;
    out[count++] = quarantined(held - 1, place);
  }
  return count;
}

std::byte* Window::allowed(uint32_t segment, uint32_t place, uint32_t generation,
                           const MemoryRange& range) {
  const SegmentRecord& record = segments_[segment];
  held_epoch_ = record.epoch.load(std::memory_order_acquire);
  if (!is_open(held_epoch_)) return nullptr;
  const uint64_t offset = range.address & ((uint64_t{1} << offset_bits) - 1);
  const uint64_t bytes = record.bytes.load(std::memory_order_relaxed);
  // Whatever the record says: nothing outside of the window's segments.
  const uint64_t most = (parts_.granules - segment) * parts_.granule_bytes;
  const bool theirs = record.owner.load(std::memory_order_relaxed) == place &&
                      record.owner_generation.load(std::memory_order_relaxed) == generation;
  const bool known = record.token_id.load(std::memory_order_relaxed) == number(range.id) &&
                     (hand_over_ != nullptr || opens(record, range.token));
  const auto rights = static_cast<Rights>(record.rights.load(std::memory_order_relaxed));
  const bool by_processors = record.atomics.load(std::memory_order_relaxed) ==
                             static_cast<uint32_t>(AtomicDomain::processor);
  if (!theirs || !known || !has(rights, range.wanted)) return nullptr;
  if (has(range.wanted, Rights::atomic) && !by_processors) return nullptr;
  if (offset > bytes || range.bytes > bytes - offset) return nullptr;
  const uint32_t file = record.file.load(std::memory_order_relaxed);
  if (hand_over_ != nullptr) {
    const bool checked = record.unchecked.load(std::memory_order_relaxed) == 0;
    return handed_over({segment, {place, generation, file}, held_epoch_, bytes, checked}, range,
                       offset);
  }
  return bytes <= most && file == 0 ? memory_of(segment) + offset : nullptr;
}

// ---- handed over

// What is ours is at hand. What is in the window itself is nobody's that we would believe.
std::byte* Window::handed_over(const HandOver::There& there, const MemoryRange& range,
                               uint64_t offset) {
  if (there.name.file == 0) return nullptr;
  if (there.name.place == own_) {
    const OwnFiles& own = hand_over_->own();
    const uint64_t bytes = own.bytes(there.segment);
    const bool known = own.is_open(there.segment, there.name.file) &&
                       own.knows(there.segment, number(range.token));
    const bool inside = offset <= bytes && range.bytes <= bytes - offset;
    return known && inside && !moved_[there.segment] ? own.at(there.segment) + offset : nullptr;
  }
  const bool to_write = has(range.wanted, Rights::write) || has(range.wanted, Rights::atomic);
  std::byte* const at = hand_over_->find(there, number(range.token), to_write, offset, range.bytes);
  return at != nullptr ? at : ask_for(there, range);
}

std::byte* Window::ask_for(const HandOver::There& there, const MemoryRange& range) {
  const FileRequest request{.word = FileRequest::first_word,
                            .segment = there.segment,
                            .file = there.name.file,
                            .token_id = number(range.id),
                            .token = number(range.token),
                            .place = own_};
  if (hand_over_->ask(request, there, now_)) tell_of_socket(there.name.place);
  return nullptr;
}

void Window::tell_of_socket(uint32_t place) const {
  if (place >= places) return;
  places_[place].record.told.fetch_add(1);
  bell_of(place).ring();
}

bool Window::lies_there(uint32_t segment, const HandOver::Name& name) const {
  const SegmentRecord& record = segments_[segment];
  return generation(name.place) == name.generation &&
         record.owner.load(std::memory_order_relaxed) == name.place &&
         record.file.load(std::memory_order_relaxed) == name.file;
}

// Memory that its owner has taken back is memory for as long as we map it.
void Window::forget_the_gone() {
  if (hand_over_ == nullptr) return;
  hand_over_->forget(
      [&](uint32_t segment, const HandOver::Name& name) { return !lies_there(segment, name); });
}

void Window::take_what_is_told() {
  told_seen_ = own_told_->load();
  forget_the_gone();
  const HandOver::Told told = hand_over_->look(now_);
  for (const uint32_t place : std::span(told.places).first(told.count)) tell_of_socket(place);
}

Result<void> Window::listen(uint32_t place) {
  if (hand_over_ == nullptr) return {};
  own_told_ = &places_[place].record.told;
  told_seen_ = own_told_->load();
  if (hand_over_->listen(path_, place, descriptor_)) return {};
  if (is_shortage(errno)) return no_room("cannot have a socket beside it", page_bytes, errno);
  return because(errno == EADDRINUSE ? Status::address_in_use : Status::io_error,
                 std::string("cannot have a socket beside it, by which memory is handed over: ") +
                     std::strerror(errno),
                 "a directory that we may write to and a short path, or leave out share=segment");
}

}  // namespace urma::drivers::cxl
