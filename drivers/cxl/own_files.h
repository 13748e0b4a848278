#pragma once

#include <array>
#include <cstdint>

#include "base/region.h"
#include "drivers/cxl/layout.h"
#include "drivers/driver.h"

namespace urma::drivers::cxl {

// What somebody shows who wants to map a segment, and what it is compared with.
struct FileRequest {
  static constexpr uint32_t first_word = 0x31'4f'48'55;  // "UHO1"
  uint32_t word;
  uint32_t segment;
  uint32_t file;  // of SegmentRecord
  uint32_t token_id;
  uint32_t token;
  uint32_t place;  // who asks: whose bell is rung
};

// Segments of a device that lie each in a sealed file of its own: without a name, so that whoever
// maps it was given its descriptor. What they may is remembered here, where no other process can
// change it. By the number of their record in the window; `make` is not for a pass.
class OwnFiles {
 public:
  explicit OwnFiles(uint32_t segments) : files_(segments) {}
  OwnFiles(const OwnFiles&) = delete;
  OwnFiles& operator=(const OwnFiles&) = delete;
  ~OwnFiles();

  // Address space; null: there is none.
  std::byte* reserve(uint32_t segment, uint64_t bytes);
  // Its memory, all of it zeros. False: the system has none, or no descriptor.
  bool make(uint32_t segment);
  // Returns the file's number, or 0: nobody is given it, for whoever maps it may read it. Who may
  // not write can never map it so: it is sealed.
  uint32_t grant(uint32_t segment, const SegmentMemory::Grant& grant);
  // Nobody is given it any more.
  void close(uint32_t segment) { files_[segment].open = false; }
  void close_all();
  // Closed: its memory and its address space go. Not in a pass: large ones take long.
  void release(uint32_t segment);
  // And its record.
  void drop(uint32_t segment);

  std::byte* at(uint32_t segment) const { return files_[segment].base; }
  uint64_t bytes(uint32_t segment) const { return files_[segment].bytes; }
  // Whether this one of it is given to who shows a token.
  bool is_open(uint32_t segment, uint32_t number) const {
    return files_[segment].open && files_[segment].number == number;
  }
  // Those who were given it, whom no hold binds: where they say that they live, a bit each.
  using Places = std::array<uint64_t, places / 64>;
  static bool among(const Places& users, uint32_t place) {
    return (users[place / 64] >> place % 64 & 1) != 0;
  }
  const Places& users(uint32_t segment) const { return files_[segment].users; }
  bool handed_over(uint32_t segment) const { return users(segment) != Places{}; }
  // Closed, and with whoever was given it.
  bool left_over(uint32_t segment) const { return !files_[segment].open && handed_over(segment); }

  // Whether the token is good, or none is asked for.
  bool knows(uint32_t segment, uint32_t token) const {
    const SegmentMemory::Grant& grant = files_[segment].grant;
    const uint32_t newer = number(grant.token) ^ token;
    const uint32_t older = number(grant.older) ^ token;
    // Both values are compared whole: the time says nothing of them.
    return (static_cast<uint32_t>(newer == 0) | static_cast<uint32_t>(older == 0) |
            static_cast<uint32_t>(!grant.checked)) != 0;
  }

  // Late: it is not there any more, or was never; that is no guess.
  enum class Answer : uint8_t { granted, bad_token, late, nonsense };
  // Granted: `descriptor` may be handed over now; it stays ours.
  Answer answer(const FileRequest& request, int& descriptor);

 private:
  struct File {
    std::byte* base;
    uint64_t bytes;
    uint32_t descriptor;  // and one
    uint32_t number;
    SegmentMemory::Grant grant;
    bool open;
    bool sealed;
    Places users;
  };

  RegionArray<File> files_;
  uint32_t last_number_ = 0;
};

}  // namespace urma::drivers::cxl
