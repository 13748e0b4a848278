// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/not_inherited.h"
#include "drivers/cxl/layout.h"
#include "drivers/cxl/own_files.h"
#include "urma/core/time.h"

namespace urma::drivers::cxl {

// The sockets beside a window, PATH.SLOT. A device asks the device in the slot for the file
// descriptor of a segment, and gets it if it shows a valid token. Each connection has one request
// and one answer: the descriptor, or only a byte, which says that the token is not valid. A device
// that gets no answer, or cannot take the descriptor, asks again later: a process may be out of
// descriptors for a moment. No call waits: until the memory is mapped, works are sent as packets.
// Used by one thread at a time.
class HandOver {
 public:
  // `others_entitled`: users other than this one may open the window, too.
  HandOver(uint32_t segments, bool others_entitled);
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;
  ~HandOver();

  OwnFiles& own() { return own_; }
  void set_judge(TokenJudge* judge) { judge_ = judge; }
  // Returns false, with errno set, if no socket can be made there; EADDRINUSE means that another
  // file has the name. Its permissions become those of `window`.
  bool listen(const std::string& path, uint32_t slot, int window);
  void stop_listening();
  // Removes the socket of a device that died while it had the slot.
  static void remove(const std::string& path, uint32_t slot);

  // ---- segments of other devices, handed to this one

  struct Name {
    uint32_t slot;
    uint32_t generation;
    uint32_t file;
    friend bool operator==(const Name&, const Name&) = default;
  };
  // The contents of a segment's record in an epoch. Each opening has its own epoch, in which other
  // tokens may be valid.
  struct There {
    uint32_t segment;
    Name name;
    uint64_t epoch;
    uint64_t bytes;
    bool checked;  // false if the segment needs no token
  };
  // Returns where this part of the segment lies in this process, or null if it is not mapped, or
  // not mapped for this use. The record does not contain the tokens: the owner's answers say which
  // tokens are valid.
  std::byte* find(const There& there, uint32_t token, bool to_write, uint64_t offset,
                  uint64_t bytes) const {
    const Foreign& one = foreign_[there.segment];
    if (!(one.name == there.name) || one.base == nullptr || (to_write && !one.writable))
      return nullptr;
    if (there.checked && one.said(there.epoch, token) != Said::good) return nullptr;
    return offset <= one.bytes && bytes <= one.bytes - offset ? one.base + offset : nullptr;
  }
  // Asks the owner for the file, and returns true if a request was sent, so that the caller must
  // notify the owner. One file at a time is requested from each owner, after a pause if the last
  // try failed, and never again with a token that the owner refused. Rarely called.
  bool ask(const FileRequest& request, const There& there, Time now);
  // Unmaps the segments for which `gone` is true, and stops waiting for them.
  template <class Function>
  void forget(Function&& gone) {
    for (size_t i = mapped_.size(); i-- > 0;) {
      if (gone(mapped_[i], foreign_[mapped_[i]].name)) unmap(i);
    }
    for (Asked& one : asked_) {
      if (one.socket >= 0 && gone(one.there.segment, one.there.name)) hang_up(one);
    }
  }

  // ---- called when another device has notified this one, or at the time `due`

  static constexpr size_t at_once = 8;
  // The slots of devices whose requests were answered. The caller must notify them.
  struct Answered {
    std::array<uint32_t, 2 * at_once> slots;
    size_t count = 0;
  };
  // Takes the answers that have arrived, and answers some requests.
  Answered look(Time now);
  // Returns when to check the socket without a notification: requests were left over, or an answer
  // is awaited.
  Time due() const { return due_; }

  uint64_t malformed() const { return malformed_; }
  uint64_t refused() const { return refused_; }
  uint64_t ignored() const { return ignored_; }

 private:
  enum class Said : uint8_t { nothing, good, no };
  struct Foreign {
    Name name;
    std::byte* base;
    uint64_t bytes;
    uint64_t epoch;  // the epoch of which the owner's answer speaks
    std::array<uint32_t, 2> tokens;
    std::array<Said, 2> of_them;
    bool writable;
    bool second;  // whether it is the next one to be forgotten

    Said said(uint64_t when, uint32_t token) const {
      if (when != epoch) return Said::nothing;
      if (tokens[0] == token && of_them[0] != Said::nothing) return of_them[0];
      return tokens[1] == token ? of_them[1] : Said::nothing;
    }
  };
  // One for each owner.
  struct Asked {
    int socket = -1;
    uint32_t token = 0;
    There there{};
    Time until{};      // an answer is awaited until then; without a socket, nothing is requested
    Duration pause{};  // the latest pause, after which another request failed
  };
  // A connection on which no request has arrived yet.
  struct Pending {
    int socket = -1;
    Time until{};
  };
  static constexpr size_t most_mapped = 4096;

  static bool name_of(const std::string& path, uint32_t slot, sockaddr_un& out);
  bool entitled(int socket) const;
  bool bind_as(const struct stat& window);
  int connect_to(uint32_t slot) const;
  static void hang_up(Asked& asked);
  static void put_off(Asked& asked, Time now);
  void collect(Time now);
  enum class Taken : uint8_t { taken, not_now };
  Taken take(const Asked& asked, int descriptor);
  enum class Mapped : uint8_t { mapped, no_room, malformed };
  Mapped map(Foreign& one, const There& there, int descriptor);
  void unmap(size_t index);
  void answer_request(int socket, const FileRequest& request, Time now);
  bool read_request(int socket, Answered& answered, Time now);
  void read_pending(Answered& answered, Time now);
  void keep_pending(int socket, Time now);
  void answer(Answered& answered, Time now);
  void look_again(Time at) { due_ = std::min(due_, at); }

  OwnFiles own_;
  const bool others_entitled_;
  std::string path_;
  int socket_ = -1;
  NotInherited not_inherited_;
  sockaddr_un bound_{};
  RegionArray<Foreign> foreign_;
  std::vector<uint32_t> mapped_;  // never more than it has room for
  std::array<Asked, slot_count> asked_{};
  std::array<Pending, at_once> pending_{};
  Time due_ = never;
  uint64_t malformed_ = 0;
  uint64_t refused_ = 0;
  uint64_t ignored_ = 0;
  TokenJudge* judge_ = nullptr;
};

}  // namespace urma::drivers::cxl
