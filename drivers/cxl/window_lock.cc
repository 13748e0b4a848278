// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/window_lock.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "base/clock.h"
#include "base/file_system.h"

namespace urma::drivers::cxl {
namespace {

constexpr off_t window_lock = off_t{1} << 60;
constexpr off_t slot_locks = window_lock + 1;
constexpr off_t all_behind = 0;

off_t byte_of(uint32_t slot) { return slot_locks + static_cast<off_t>(slot); }

struct flock bytes_at(off_t at, off_t count, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = count;
  return lock;
}

bool set(int descriptor, off_t at, short kind) {
  struct flock lock = bytes_at(at, 1, kind);
  return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

// A lock that cannot be asked for is taken to be held: no slot is ended by mistake.
bool is_locked(int descriptor, off_t at, off_t count) {
  struct flock lock = bytes_at(at, count, F_WRLCK);
  return fcntl(descriptor, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Notices that a process takes or gives back memory of the window's file.
class MemoryWatch {
 public:
  explicit MemoryWatch(int descriptor)
      : descriptor_(descriptor), bytes_(allocated_bytes(descriptor)) {}

  // Returns whether the file has more or less memory than at the last call. After so many turns
  // from growing to shrinking or back it returns false, because each process that makes a window
  // and leaves it causes two, but the same memory may be taken and given back forever.
  bool has_changed() {
    constexpr int most_turns = 16;
    const uint64_t bytes = allocated_bytes(descriptor_);
    if (bytes == bytes_) return false;
    const bool grows = bytes > bytes_;
    if (grows != grew_) ++turns_;
    grew_ = grows;
    bytes_ = bytes;
    return turns_ <= most_turns;
  }

 private:
  int descriptor_;
  uint64_t bytes_;
  bool grew_ = true;
  int turns_ = 0;
};

}  // namespace

bool lock_slot(int descriptor, uint32_t slot) { return set(descriptor, byte_of(slot), F_WRLCK); }
void unlock_slot(int descriptor, uint32_t slot) { set(descriptor, byte_of(slot), F_UNLCK); }
bool slot_is_locked(int descriptor, uint32_t slot) {
  return is_locked(descriptor, byte_of(slot), 1);
}
bool any_slot_is_locked(int descriptor) { return is_locked(descriptor, slot_locks, all_behind); }

WindowLock::WindowLock(int descriptor) : descriptor_(descriptor) { take(); }

WindowLock::WindowLock(int descriptor, Duration at_most) : WindowLock(descriptor) {
  MemoryWatch memory(descriptor);
  Time until = read_clock() + at_most;
  while (!held_ && somebody_has_it() && read_clock() < until) {
    constexpr timespec while_it_works{0, 200'000};
    ppoll(nullptr, 0, &while_it_works, nullptr);
    if (memory.has_changed()) until = read_clock() + at_most;
    take();
  }
}

WindowLock::~WindowLock() {
  if (held_) set(descriptor_, window_lock, F_UNLCK);
}

void WindowLock::take() {
  held_ = set(descriptor_, window_lock, F_WRLCK);
  why_not_ = held_ ? 0 : errno;
}

bool WindowLock::somebody_has_it() const { return why_not_ == EAGAIN || why_not_ == EACCES; }

}  // namespace urma::drivers::cxl
