#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "urma/urma.hpp"

namespace urma::test {

// A rule of the library that a run has broken.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The memory that one incarnation of a host lets others write into, and what it must hold. The
// memory belongs to the world, so that it can be examined after its host has died.
class Memory {
 public:
  explicit Memory(size_t bytes);
  // Memory of the host's own, which is freed with it.
  explicit Memory(std::span<std::byte> bytes);

  std::span<std::byte> bytes() { return bytes_; }
  size_t size() const { return bytes_.size(); }

  // A range that a work in progress may change, or that one that ended unknown may still change, is
  // not given to another work.
  bool free_to_write(uint64_t offset, uint64_t bytes) const;
  bool free_to_read(uint64_t offset, uint64_t bytes) const { return free_to_write(offset, bytes); }
  void begin_write(uint64_t offset, uint64_t bytes, uint64_t work);
  void begin_read(uint64_t offset, uint64_t bytes);
  void end_read(uint64_t offset);
  // The bytes that were read must be those that were there.
  void check_read(uint64_t offset, std::span<const std::byte> bytes, uint64_t work) const;

  // The write is done: the range holds the work's bytes.
  void wrote(uint64_t offset, uint64_t work);
  // It was not executed: the range holds what it held.
  void not_written(uint64_t offset, uint64_t work);
  // The outcome is unknown: each byte is the old one or the new one, now and later.
  void unknown(uint64_t offset);
  // Part of it may have been placed before it was refused; nothing comes any more.
  void refused(uint64_t offset);
  // The whole range holds the work's bytes, though its initiator has not been told yet.
  void arrived(uint64_t offset, uint64_t work);

  // Everything, at the end of a run.
  void check_all(const std::string& where) const;
  // The host is gone: from here on nothing may change, or, if it was the host's, nothing is known.
  void freeze();
  // The same, after its application has used the memory for something else. Not if it is the
  // host's.
  void overwrite(std::byte with);

 private:
  struct Range {
    uint64_t bytes;
    uint64_t work;
    bool tainted;
  };

  void check_untouched(uint64_t from, uint64_t to) const;
  bool overlaps(uint64_t offset, uint64_t bytes) const;

  std::vector<std::byte> own_;
  std::span<std::byte> bytes_;
  bool gone_ = false;
  std::vector<std::byte> expected_;
  std::vector<std::byte> frozen_;
  std::map<uint64_t, Range> ranges_;  // by offset: busy or tainted
};

// A word that works add to. What each found there tells when it was executed.
class Counter {
 public:
  // Done; what it found, where that was told.
  void added(uint64_t by, std::optional<uint64_t> found, uint64_t work);
  // Whether it was added, or will be, is unknown.
  void may_have_added(uint64_t by) { doubtful_ += by; }
  // Besides, works under way may add so much.
  void check(uint64_t value, uint64_t under_way) const;

 private:
  uint64_t sum_ = 0;
  uint64_t doubtful_ = 0;
  std::map<uint64_t, uint64_t> found_;  // from what it found to what it left
};

// One work and all that is known of it.
struct WorkRecord {
  enum class Kind : uint8_t {
    write,
    write_immediate,
    read,
    send,
    forged,
    write_notify,
    add,
    borrow,  // a read of memory that may be taken back
  };

  uint64_t number = 0;
  Kind kind = Kind::write;
  uint32_t host = 0;  // initiator, and the life of it
  uint32_t life = 0;
  uint32_t jetty = 0;
  uint32_t target = 0;  // likewise
  uint32_t target_life = 0;
  uint32_t target_jetty = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool signalled = true;
  bool completed = false;
  bool abandoned = false;  // its initiator died
  Status status = Status::ok;
  uint32_t arrivals = 0;  // of its message, immediate or notification
  Time posted{};
  std::shared_ptr<Memory> memory;  // the target's
  std::shared_ptr<Counter> counter;
  std::optional<uint64_t> found;  // in the counter
  std::vector<std::byte> buffer;  // source or destination
  std::vector<Buffer> pieces;
};

// Whether such a work writes into its target's Memory.
inline bool changes_memory(WorkRecord::Kind kind) {
  using Kind = WorkRecord::Kind;
  return kind != Kind::read && kind != Kind::send && kind != Kind::add && kind != Kind::borrow;
}

}  // namespace urma::test
