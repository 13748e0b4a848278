#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "drivers/cxl/guard.h"
#include "drivers/cxl/layout.h"
#include "drivers/driver.h"
#include "urma/base/not_inherited.h"

namespace urma::drivers::cxl {

class WindowLock;

struct WindowSettings {
  std::string path;    // empty: this user's own in /dev/shm
  uint64_t bytes = 0;  // 0: what is there, else the default, most of it not taken yet
};

// A mapped window, and what changes hands in it: places and rings. Everything here is the control
// path; it takes the window's lock, but `claim_pair` does not wait for it.
class Window {
 public:
  // Opens the window, makes it when there is none, and takes back what the dead held.
  static Result<Window> open(const WindowSettings& settings);
  Window(Window&& other) noexcept;
  Window& operator=(Window&&) = delete;
  ~Window();

  uint64_t id() const { return id_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t rings() const { return rings_; }
  const std::string& path() const { return path_; }
  // Somebody has cut off its file: what is here now are zeros of our own.
  bool lost() const { return guard_.lost(); }
  // False in a child of the process that opened it, which has its memory, but not its place; and
  // when it was abandoned.
  bool here() const;
  // As if this process had been killed: its locks go, and nothing else.
  void abandon();

  // ---- places

  // Takes a free place and holds it until `leave`, or death.
  Result<uint32_t> join();
  void leave(uint32_t place);

  // ---- pairs

  // Makes the two rings of a pair of which the first is the caller. Not now: somebody has the lock.
  // No room: all rings are in use, or the file system has no memory for another one.
  enum class Claim : uint8_t { made, not_now, no_room, nobody_there };
  Claim claim_pair(uint32_t from, uint32_t to);
  // Whether somebody lives there. Ends the place of whoever has died.
  bool inhabited(uint32_t place);

  // ---- without the lock; any of it may change at any time

  uint64_t changes() const { return changes_->count.load(std::memory_order_acquire); }
  uint32_t generation(uint32_t place) const {
    return place_at(place).record.generation.load(std::memory_order_acquire);
  }
  Place& place_at(uint32_t place) const { return places_[place]; }
  // Whose a ring is; a serial of zero: nobody's, or in the making.
  struct Ownership {
    uint32_t serial;
    uint32_t from;
    uint32_t to;
    uint32_t from_generation;
    uint32_t to_generation;
  };
  Ownership ownership(uint32_t ring) const;
  Ring& ring_at(uint32_t ring) const;

 private:
  struct Says;

  Window() = default;
  Result<void> map();
  Result<int> open_path() const;
  static Says read(const Header& header);
  static bool unfinished(const Says& says);
  Result<void> found(bool all_of_it);
  Result<void> make(bool all_of_it);
  Result<void> examine(const Says& says) const;
  Result<void> open_file(const WindowSettings& settings);
  void release_dead();
  void end_place(uint32_t place);
  void tell_partners(uint32_t place) const;
  int take_memory(uint64_t at, uint64_t bytes) const;
  Error because(Status status, std::string_view why, std::string_view fix) const;
  Error cannot_lock(const WindowLock& lock) const;
  bool held(uint32_t place) const;
  bool free_again(uint32_t ring) const;
  std::optional<uint32_t> free_ring(uint32_t after) const;
  bool take_ring_memory(uint32_t ring) const;
  void give(uint32_t ring, uint32_t from, uint32_t to);
  void changed();

  std::string path_;
  int descriptor_ = -1;
  NotInherited not_inherited_;  // or a child would hold our place
  pid_t owner_ = -1;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t id_ = 0;
  uint32_t rings_ = 0;
  static constexpr uint32_t nobody = UINT32_MAX;
  uint32_t own_ = nobody;  // the place that we hold
  bool is_file_ = false;
  Guard guard_;
  Changes* changes_ = nullptr;
  Place* places_ = nullptr;
  RingRecord* records_ = nullptr;
};

}  // namespace urma::drivers::cxl
