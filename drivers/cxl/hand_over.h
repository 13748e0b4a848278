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

// Sockets beside a window, PATH.PLACE: whoever lives there is asked for a segment's descriptor, and
// gives it to whoever shows a token that is good. One request and one answer each: the descriptor,
// or a byte alone, which says that the token is not good. Who gets none, or cannot take it, asks
// again later: a process may be out of descriptors for a moment. Nobody waits: until the memory is
// there, packets go. One thread at a time.
class HandOver {
 public:
  // `entitled`: users other than ours may open the window, too.
  HandOver(uint32_t segments, bool others_entitled);
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;
  ~HandOver();

  OwnFiles& own() { return own_; }
  void set_judge(TokenJudge* judge) { judge_ = judge; }
  // False, and errno: no socket can be made there; EADDRINUSE: something else has its name. Its
  // permissions become `window`'s.
  bool listen(const std::string& path, uint32_t place, int window);
  void stop_listening();
  // What somebody who died there has left.
  static void remove(const std::string& path, uint32_t place);

  // ---- of others: what was handed to us

  struct Name {
    uint32_t place;
    uint32_t generation;
    uint32_t file;
    friend bool operator==(const Name&, const Name&) = default;
  };
  // What its record says, as of an epoch: each opening has its own, after which other tokens are
  // good.
  struct There {
    uint32_t segment;
    Name name;
    uint64_t epoch;
    uint64_t bytes;
    bool checked;  // false: it needs no token
  };
  // Where it lies here; null: it is not here, or not for this. Tokens are no record's to tell:
  // which ones are good its owner has said.
  std::byte* find(const There& there, uint32_t token, bool to_write, uint64_t offset,
                  uint64_t bytes) const {
    const Foreign& one = foreign_[there.segment];
    if (!(one.name == there.name) || one.base == nullptr || (to_write && !one.writable))
      return nullptr;
    if (there.checked && one.said(there.epoch, token) != Said::good) return nullptr;
    return offset <= one.bytes && bytes <= one.bytes - offset ? one.base + offset : nullptr;
  }
  // Cold. True: it was asked for, and its owner is to be told. Once at a time of each owner, after
  // a pause if that was in vain, and not again with a token that was wrong.
  bool ask(const FileRequest& request, const There& there, Time now);
  // Those that `gone` says it of are unmapped, or no longer waited for.
  template <class Function>
  void forget(Function&& gone) {
    for (size_t i = mapped_.size(); i-- > 0;) {
      if (gone(mapped_[i], foreign_[mapped_[i]].name)) unmap(i);
    }
    for (Asked& one : asked_) {
      if (one.socket >= 0 && gone(one.there.segment, one.there.name)) hang_up(one);
    }
  }

  // ---- when somebody has said that there is something, or it is time to look anyway

  // Takes what answers have come, and answers some of those who ask: these places are to be told.
  static constexpr size_t at_once = 8;
  struct Told {
    std::array<uint32_t, 2 * at_once> places;
    size_t count = 0;
  };
  Told look(Time now);
  // When, though nobody says anything: there was too much for once, or something is waited for.
  Time due() const { return due_; }

  uint64_t malformed() const { return malformed_; }
  uint64_t refused() const { return refused_; }
  uint64_t unheard() const { return unheard_; }

 private:
  enum class Said : uint8_t { nothing, good, no };
  struct Foreign {
    Name name;
    std::byte* base;
    uint64_t bytes;
    uint64_t epoch;  // of what was said
    std::array<uint32_t, 2> tokens;
    std::array<Said, 2> of_them;
    bool writable;
    bool second;  // is the next one to be forgotten

    Said said(uint64_t when, uint32_t token) const {
      if (when != epoch) return Said::nothing;
      if (tokens[0] == token && of_them[0] != Said::nothing) return of_them[0];
      return tokens[1] == token ? of_them[1] : Said::nothing;
    }
  };
  // Of each owner.
  struct Asked {
    int socket = -1;
    uint32_t token = 0;
    There there{};
    Time until{};      // an answer is waited for; without a socket: nothing is asked
    Duration pause{};  // the last one, after which it was asked in vain again
  };
  // Who has connected, and not said anything yet: it was told of by somebody else.
  struct Silent {
    int socket = -1;
    Time until{};
  };
  static constexpr size_t most_mapped = 4096;

  static bool name_of(const std::string& path, uint32_t place, sockaddr_un& out);
  bool entitled(int socket) const;
  bool bind_as(const struct stat& window);
  int connect_to(uint32_t place) const;
  static void hang_up(Asked& asked);
  static void put_off(Asked& asked, Time now);
  void collect(Time now);
  enum class Taken : uint8_t { taken, not_now };
  Taken take(const Asked& asked, int descriptor);
  enum class Mapped : uint8_t { mapped, no_room, malformed };
  Mapped map(Foreign& one, const There& there, int descriptor);
  void unmap(size_t index);
  void answer_request(int socket, const FileRequest& request, Time now);
  bool hear(int socket, Told& told, Time now);
  void hear_the_silent(Told& told, Time now);
  void keep_silent(int socket, Time now);
  void answer(Told& told, Time now);
  void look_again(Time at) { due_ = std::min(due_, at); }

  OwnFiles own_;
  const bool others_entitled_;
  std::string path_;
  int socket_ = -1;
  NotInherited not_inherited_;
  sockaddr_un bound_{};
  RegionArray<Foreign> foreign_;
  std::vector<uint32_t> mapped_;  // never more than it has room for
  std::array<Asked, places> asked_{};
  std::array<Silent, at_once> silent_{};
  Time due_ = never;
  uint64_t malformed_ = 0;
  uint64_t refused_ = 0;
  uint64_t unheard_ = 0;
  TokenJudge* judge_ = nullptr;
};

}  // namespace urma::drivers::cxl
