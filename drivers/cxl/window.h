#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/bell.h"
#include "base/not_inherited.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/guard.h"
#include "drivers/cxl/hand_over.h"
#include "drivers/cxl/layout.h"
#include "drivers/cxl/pages.h"
#include "drivers/driver.h"

namespace urma::drivers::cxl {

class WindowLock;

struct WindowSettings {
  std::string path;    // empty: this user's own in /dev/shm
  uint64_t bytes = 0;  // 0: what is there, else the default, most of it not taken yet
  // Nobody keeps its memory coherent between those who map it. Nothing: as it was made, or it is.
  std::optional<bool> coherent = {};
  // Each segment is a file of its own, and is handed over (hand_over.h).
  bool hands_over = false;
  uint64_t double_seed = 0;  // not 0: caches are acted (ActedCaches)
  SettingList options = {};  // as they were read, for whoever asks
};

// A mapped window, and what changes hands in it: places, rings and memory. All of that is the
// control path and takes the window's lock, for which `claim_pair` and `take` do not wait. `hold`,
// `let_go` and what is below "without the lock" are the data path.
class Window final : public SegmentMemory {
 public:
  // Opens the window, makes it when there is none, and takes back what the dead held.
  static Result<Window> open(const WindowSettings& settings);
  Window(Window&& other) noexcept;
  Window& operator=(Window&&) = delete;
  ~Window() override;

  uint64_t id() const { return id_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t rings() const { return parts_.rings; }
  bool coherent() const { return caches_ == nullptr; }
  Caches* caches() const { return caches_.get(); }
  const Parts& parts() const { return parts_; }
  const std::string& path() const { return path_; }
  const Pages& pages() const { return pages_; }
  // Somebody has cut off its file: what is here now are zeros of our own.
  bool lost() const { return guard_.lost(); }
  // False in a child of the process that opened it, which has its memory, but not its place; and
  // when it was abandoned.
  bool here() const;
  // As if this process had been killed: its locks go, and nothing else.
  void abandon();

  // ---- places

  // The address of who lives there: the window's number, the place.
  static constexpr size_t place_at = 14;  // in it
  Endpoint endpoint_of(uint32_t place) const;
  // Takes a free place and holds it until `leave`, or death.
  Result<uint32_t> join();
  void leave(uint32_t place);

  // ---- pairs

  // Makes the two rings of a pair of which the first is the caller. Not now: somebody has the lock.
  // No ring: all are in use. No memory: the file system has none for two more.
  enum class Claim : uint8_t { made, not_now, no_ring, no_memory, nobody_there };
  Claim claim_pair(uint32_t from, uint32_t to);
  // Whether somebody lives there. Ends the place of whoever has died.
  bool inhabited(uint32_t place);

  // ---- segments: SegmentMemory

  Taken take(uint64_t bytes, Lease& lease) override;
  bool prepare(const Lease& lease) override;
  void grant(const Lease& lease, const Grant& grant) override;
  void revoke(const Lease& lease) override;
  void revoke_all() override;
  bool held(const Lease& lease) override;
  bool move(const Lease& lease) override;
  bool loose(const Lease& lease) const override {
    return hand_over_ != nullptr && hand_over_->own().handed_over(lease.number);
  }
  bool moved(const Lease& lease) const override { return moved_[lease.number]; }
  bool restore(const Lease& lease) override;
  void empty(const Lease& lease) override;
  void give_back(const Lease& lease) override;
  size_t quarantined(std::span<Quarantined> out) override;
  void set_judge(TokenJudge* judge) override {
    if (hand_over_ != nullptr) hand_over_->set_judge(judge);
  }
  MappedMemory mapped() const {
    return {memory_of(0), parts_.granule_bytes, offset_bits, hand_over_ == nullptr};
  }
  // Null: segments lie in the window.
  const HandOver* hands_over() const { return hand_over_.get(); }
  // In each pass: something may have been left at our socket, or is waited for.
  bool told(Time now) {
    now_ = now;
    return hand_over_ != nullptr && (own_told_->load() != told_seen_ || now >= hand_over_->due());
  }
  void take_what_is_told();
  Time next_look() const { return hand_over_ != nullptr ? hand_over_->due() : never; }
  void forget_the_gone();
  // Of the life at a place: Ways::hold. `let_go` ends it.
  std::byte* hold(uint32_t place, uint32_t generation, const MemoryRange& range) {
    if ((range.address & in_the_window) == 0 || lost()) return nullptr;
    const auto segment = static_cast<uint32_t>((range.address & ~in_the_window) >> offset_bits);
    if (segment >= parts_.granules) return nullptr;
    // First it is said, then it is looked: whoever revokes it does the one, and then the other.
    own_hold_->segment.store(segment + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::byte* const at = allowed(segment, place, generation, range);
    held_ = segment;
    if (at == nullptr) let_go();
    return at;
  }
  // False: it was closed meanwhile, and what was copied may lie where nobody looks any more.
  bool let_go() {
    const bool still = segments_[held_].epoch.load(std::memory_order_acquire) == held_epoch_;
    own_hold_->segment.store(0, std::memory_order_release);
    return still;
  }

  // ---- without the lock; any of it may change at any time

  uint64_t changes() const { return seen(changes_->count); }
  uint32_t generation(uint32_t place) const { return seen(places_[place].record.generation); }
  // Where processes of this kernel sleep: no cache is in their way.
  Bell bell_of(uint32_t place) const {
    return Bell(reinterpret_cast<Place*>(mapped_ + places_at)[place].bell.word);
  }
  template <class Value>
  Value seen(const std::atomic<Value>& word) const {
    if (caches_ != nullptr) caches_->refresh(&word, sizeof word);
    return word.load(std::memory_order_acquire);
  }
  template <class Value>
  void tell(std::atomic<Value>& word, Value value) const {
    word.store(value, std::memory_order_release);
    if (caches_ != nullptr) caches_->write_back(&word, sizeof word);
  }
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
  Result<void> map(const WindowSettings& settings);
  Result<void> put_caches_between(uint64_t double_seed);
  void work_on(std::byte* base);
  Result<int> open_path() const;
  static Says read(const Header& header);
  static bool unfinished(const Says& says);
  Result<void> found(const WindowSettings& settings);
  Result<void> make(const WindowSettings& settings);
  Result<void> examine(const Says& says, const WindowSettings& settings) const;
  Result<void> open_file(const WindowSettings& settings);
  Result<uint64_t> choose_size(const WindowSettings& settings, uint64_t file_bytes) const;
  void release_dead();
  void end_place(uint32_t place);
  void tell_partners(uint32_t place) const;
  int take_memory(uint64_t at, uint64_t bytes) const;
  Error cannot_have(std::string_view what, uint64_t needed_bytes, int why) const;
  Error no_room(std::string_view what, uint64_t needed_bytes, int why) const;
  Error because(Status status, std::string_view why, std::string_view fix) const;
  Error cannot_lock(const WindowLock& lock) const;
  bool lives(uint32_t place) const;
  bool free_again(uint32_t ring) const;
  std::optional<uint32_t> free_ring(uint32_t after) const;
  bool take_ring_memory(uint32_t ring) const;
  void give(uint32_t ring, uint32_t from, uint32_t to);
  std::byte* allowed(uint32_t segment, uint32_t place, uint32_t generation,
                     const MemoryRange& range);
  [[gnu::cold]] std::byte* ask_for(const HandOver::There& there, const MemoryRange& range);
  std::byte* handed_over(const HandOver::There& there, const MemoryRange& range, uint64_t offset);
  bool lies_there(uint32_t segment, const HandOver::Name& name) const;
  void tell_of_socket(uint32_t place) const;
  Result<void> listen(uint32_t place);
  uint32_t granules_taken(uint32_t segment);
  // Nobody has cut off the window, or written it over: what is there can be believed to be ours.
  bool owns_place() const {
    return here() && !lost() && own_ != nobody && generation(own_) == own_generation_;
  }
  uint64_t granules_for(uint64_t bytes) const {
    if (hand_over_ != nullptr) return bytes > 0 ? 1 : 0;  // its record is all that it needs here
    return bytes / parts_.granule_bytes + (bytes % parts_.granule_bytes != 0 ? 1 : 0);
  }
  bool punch(const Lease& lease) const;
  bool leaves_room_for_rings() const;
  size_t mapped_bytes(const Lease& lease) const {
    if (hand_over_ != nullptr) return hand_over_->own().bytes(lease.number);
    return granules_for(lease.bytes) * parts_.granule_bytes;
  }
  bool holds(uint32_t place, uint32_t segment) const;
  Quarantined quarantined(uint32_t segment, uint32_t place) const;
  size_t left_over(std::span<Quarantined> out) const;
  std::byte* memory_of(uint32_t segment) const {
    return base_ + parts_.memory_at + segment * parts_.granule_bytes;
  }
  void changed();

  std::string path_;
  int descriptor_ = -1;
  NotInherited not_inherited_;  // or a child would hold our place
  pid_t owner_ = -1;
  std::byte* mapped_ = nullptr;
  std::byte* base_ = nullptr;  // what is worked on: a copy, if caches are acted
  std::unique_ptr<Caches> caches_;
  uint64_t bytes_ = 0;
  uint64_t id_ = 0;
  Parts parts_;
  static constexpr uint32_t nobody = UINT32_MAX;
  uint32_t own_ = nobody;  // the place that we hold
  uint32_t own_generation_ = 0;
  bool is_file_ = false;
  Pages pages_;
  Guard guard_;
  Changes* changes_ = nullptr;
  Place* places_ = nullptr;
  RingRecord* records_ = nullptr;
  SegmentRecord* segments_ = nullptr;
  PlaceHold* own_hold_ = nullptr;  // of our place
  uint32_t held_ = 0;              // the segment that we hold
  uint64_t held_epoch_ = 0;        // and its record's when we looked
  // Segments of ours that lie elsewhere now. Written by the thread that ends the segment.
  std::unique_ptr<std::atomic<bool>[]> moved_;
  std::unique_ptr<HandOver> hand_over_;
  const std::atomic<uint32_t>* own_told_ = nullptr;  // of our place
  uint32_t told_seen_ = 0;
  Time now_{};  // of the last pass
};

}  // namespace urma::drivers::cxl
