// SPDX-License-Identifier: Apache-2.0
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

// Reports that a run has broken a rule of the library.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The memory of one incarnation of a host to which others may write, and the bytes that it must
// contain. The world owns the memory, so that it can be examined after the host has died.
class Memory {
 public:
  explicit Memory(size_t bytes);
  // Uses memory of the host, which is freed together with the host.
  explicit Memory(std::span<std::byte> bytes);

  std::span<std::byte> bytes() { return bytes_; }
  size_t size() const { return bytes_.size(); }

  // Returns false if the range overlaps one that a work in progress may change, or that a work of
  // unknown outcome may still change.
  bool free_to_write(uint64_t offset, uint64_t bytes) const;
  bool free_to_read(uint64_t offset, uint64_t bytes) const { return free_to_write(offset, bytes); }
  void begin_write(uint64_t offset, uint64_t bytes, uint64_t work);
  void begin_read(uint64_t offset, uint64_t bytes);
  void end_read(uint64_t offset);
  // Checks that a read returned the bytes that were there.
  void check_read(uint64_t offset, std::span<const std::byte> bytes, uint64_t work) const;

  // The write has completed: the range must contain the work's bytes.
  void wrote(uint64_t offset, uint64_t work);
  // The write was not executed: the range must contain its previous bytes.
  void not_written(uint64_t offset, uint64_t work);
  // The outcome is unknown: from now on each byte may have its old or its new value.
  void unknown(uint64_t offset);
  // The write was refused: part of its data may have been placed before, and no more of it comes.
  void refused(uint64_t offset);
  // The whole range contains the work's bytes, although its initiator has no completion yet.
  void arrived(uint64_t offset, uint64_t work);

  // Checks all bytes, at the end of a run.
  void check_all(const std::string& where) const;
  // The host has died. From now on nothing may change; if the memory was the host's own, it is not
  // checked any longer.
  void freeze();
  // Does the same as `freeze`, after the application has used the memory for something else. It
  // must not be called for memory of the host.
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
  std::map<uint64_t, Range>
      ranges_;  // by offset: ranges that works in progress or of unknown outcome may change
};

// A word to which works add. The values that they fetched show when each was executed.
class Counter {
 public:
  // The addition is done. `found` is the fetched value, if the work returns it.
  void added(uint64_t by, std::optional<uint64_t> found, uint64_t work);
  // The outcome of the addition is unknown: it may have been executed, or may be executed later.
  void may_have_added(uint64_t by) { doubtful_ += by; }
  // Checks the word. Works in progress may have added up to `under_way` more.
  void check(uint64_t value, uint64_t under_way) const;

 private:
  uint64_t sum_ = 0;
  uint64_t doubtful_ = 0;
  std::map<uint64_t, uint64_t> found_;  // from the value before an addition to the value after it
};

// One work and everything that is known about it.
struct WorkRecord {
  enum class Kind : uint8_t {
    write,
    write_immediate,
    read,
    send,
    forged,
    write_notify,
    add,
    borrow,  // a read of memory that its owner may revoke
  };

  uint64_t number = 0;
  Kind kind = Kind::write;
  uint32_t host = 0;  // the initiator, and its incarnation
  uint32_t life = 0;
  uint32_t jetty = 0;
  uint32_t target = 0;  // the target, and its incarnation
  uint32_t target_life = 0;
  uint32_t target_jetty = 0;  // unless any Jetty of the target may receive it
  bool grouped = false;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool signalled = true;
  bool completed = false;
  bool abandoned = false;  // its initiator died
  Status status = Status::ok;
  uint32_t arrivals = 0;  // arrivals of its message, immediate or notification
  Time posted{};
  std::shared_ptr<Memory> memory;  // of the target
  std::shared_ptr<Counter> counter;
  std::optional<uint64_t> found;  // the value that an addition fetched
  std::vector<std::byte> buffer;  // source or destination
  std::vector<Buffer> pieces;
};

// Returns whether works of this kind write to their target's Memory.
inline bool changes_memory(WorkRecord::Kind kind) {
  using Kind = WorkRecord::Kind;
  return kind != Kind::read && kind != Kind::send && kind != Kind::add && kind != Kind::borrow;
}

}  // namespace urma::test
