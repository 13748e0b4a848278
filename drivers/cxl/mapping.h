#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bell.h"
#include "base/not_inherited.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/guard.h"
#include "drivers/cxl/layout.h"
#include "drivers/cxl/pages.h"
#include "urma/core/result.h"

namespace urma::drivers::cxl {

class WindowLock;

// Builds errors that name the window.
struct WindowErrors {
  std::string path;

  Error because(Status status, std::string_view why, std::string_view fix) const;
  Error cannot_lock(const WindowLock& lock) const;
  // `error`: the errno of a call that wanted so many bytes of the file system.
  Error cannot_have(std::string_view what, uint64_t needed_bytes, int error) const;
};

// A window's file or device, and where it is mapped: finds the parts that layout.h describes, and
// reads and writes the words that processes share there, past the processor's caches where these
// are not coherent. Owns the descriptor, which carries this process's locks, and the mapping. Does
// not know which process owns what.
//
// Any thread may read the words; any of them may change at any time. All else is for one thread.
class Mapping {
 public:
  explicit Mapping(std::string path);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Opens the path, and makes the file if there is none. Once, before all else.
  Result<void> open();
  // Maps so many bytes. `double_seed` not 0: caches are acted (ActedCaches).
  Result<void> map(uint64_t bytes, bool coherent, uint64_t double_seed);
  // From now on, lines are written back to memory and refreshed from it. Once.
  Result<void> put_caches_between(uint64_t double_seed);
  // Maps this part of the file again at its address, after it was replaced by private pages.
  // Returns false if the path names another file by now.
  bool map_again(std::byte* at, uint64_t bytes);

  const std::string& path() const { return errors_.path; }
  const WindowErrors& errors() const { return errors_; }
  int descriptor() const { return descriptor_; }
  bool is_file() const { return is_file_; }
  const Pages& pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }
  const Parts& parts() const { return parts_; }
  // Returns the memory that the process works on: the mapping, or a copy of it if caches are acted.
  std::byte* base() const { return base_; }
  Caches* caches() const { return caches_.get(); }
  bool coherent() const { return caches_ == nullptr; }

  // Returns false in a child of the process that opened the window, which has the memory but not
  // the locks, and after `abandon`.
  bool here() const;
  // Leaves the window as if this process had been killed: its locks are released, nothing else.
  void abandon();
  // Returns whether another process has cut off the file: then the mapping is zeros of this
  // process's own.
  bool lost() const { return guard_.lost(); }

  // Has the file system give memory for this part now, so that a lack of it is an error here and
  // not a fault later. Returns an errno, or 0: also where memory cannot be taken in advance, as of
  // a device, because writing there might undo what other processes write.
  int take_memory(uint64_t at, uint64_t bytes) const;
  // Gives whole pages of this part back to the file system: then they read as zeros.
  bool give_back_memory(uint64_t at, uint64_t bytes) const;

  // ---- the shared words

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
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  // Returns the random number of the window, as it was when it was opened.
  uint64_t id() const { return id_; }
  void set_id(uint64_t id) { id_ = id; }
  Changes& changes() const { return *reinterpret_cast<Changes*>(base_ + line_bytes); }
  Place* slots() const { return reinterpret_cast<Place*>(base_ + places_at); }
  RingRecord* ring_records() const { return reinterpret_cast<RingRecord*>(base_ + records_at); }
  SegmentRecord* segment_records() const {
    return reinterpret_cast<SegmentRecord*>(base_ + parts_.segments_at);
  }
  Ring& ring_at(uint32_t ring) const {
    return *reinterpret_cast<Ring*>(base_ + parts_.rings_at + uint64_t{ring} * ring_bytes);
  }
  std::byte* memory_of(uint32_t granule) const {
    return base_ + parts_.memory_at + granule * parts_.granule_bytes;
  }
  uint32_t generation(uint32_t slot) const { return seen(slots()[slot].record.generation); }
  // Returns where processes of this kernel sleep: no cache is in their way.
  Bell bell_of(uint32_t slot) const {
    return Bell(reinterpret_cast<Place*>(mapped_ + places_at)[slot].bell.word);
  }

 private:
  Result<int> open_path() const;
  bool same_file(int descriptor) const;
  Error cannot_map(int error) const;

  WindowErrors errors_;
  int descriptor_ = -1;
  NotInherited not_inherited_;  // or a child would keep the locks
  pid_t owner_;
  bool is_file_ = false;
  Pages pages_;
  uint64_t bytes_ = 0;
  Parts parts_;
  uint64_t id_ = 0;
  std::byte* mapped_ = nullptr;
  std::byte* base_ = nullptr;
  std::unique_ptr<Caches> caches_;
  Guard guard_;
};

}  // namespace urma::drivers::cxl
