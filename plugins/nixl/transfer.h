// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/nixl/nixl.h"
#include "urma/urma.hpp"

namespace urma::nixl {

class Peer;

// A range of local memory and one of remote memory, of the same length.
struct Piece {
  std::byte* here;
  uint64_t bytes;
  RemoteSegment there;
  uint64_t offset;  // in `there`
};

// Appends a piece, as a longer one if it continues the last piece on both sides, and as several if
// it is longer than one work may be.
void append(std::vector<Piece>& pieces, Piece piece);

// A request of the agent: pieces that are written or read, and then a notification, which leaves
// when all pieces are done. It can be posted again when it has ended. A notification alone is a
// transfer without pieces. The mutex of its peer guards all that changes.
class Transfer final : public nixlBackendReqH {
 public:
  Transfer(std::shared_ptr<Peer> peer, Operation operation, std::vector<Piece> pieces)
      : peer_(std::move(peer)), operation_(operation), pieces_(std::move(pieces)) {
    for (const Piece& piece : pieces_) bytes_ += piece.bytes;
  }

  const std::shared_ptr<Peer>& peer() const { return peer_; }
  // Its peer keeps it from now on, and so must not be kept by it.
  std::shared_ptr<Peer> detach() { return std::exchange(peer_, nullptr); }

  // Returns whether it may end while it is posted.
  bool is_small() const { return bytes_ <= small_bytes; }

  // Begins anew; `messages` are those of the notification, or none.
  void begin(std::vector<std::vector<std::byte>> messages);
  // Returns how many works can be posted now. The notification waits until the pieces have ended.
  size_t postable() const;
  // Returns whether its last piece has ended and its notification can be posted.
  bool notification_is_next() const {
    return next_ == pieces_.size() && next_ < size() && outstanding_ == 0;
  }
  // Returns the work that is `ahead` works behind the next one, without its tag.
  Work work(size_t ahead, const RemoteJetty& mailbox) const;
  void posted(size_t works) { next_ += works, outstanding_ += works; }
  // Takes note of the end of one of its works.
  void ended(Status status);
  // Ends it, because nothing can be posted any longer.
  void fail(Status status);

  bool active() const { return outstanding_ != 0 || next_ < size(); }
  nixl_status_t status() const;

 private:
  static constexpr uint64_t small_bytes = 64 * 1024;

  size_t size() const { return pieces_.size() + messages_.size(); }

  std::shared_ptr<Peer> peer_;
  const Operation operation_;
  const std::vector<Piece> pieces_;
  uint64_t bytes_ = 0;
  std::vector<std::vector<std::byte>> messages_;
  size_t next_ = SIZE_MAX;  // the first work that is not posted; not begun: behind all
  size_t outstanding_ = 0;
  Status failure_ = Status::ok;  // the first one
};

// Says what a status of the library is for NIXL. REMOTE_DISCONNECT tells a program to load the
// metadata of its peer again, which is also the cure where the peer has withdrawn its memory.
nixl_status_t status_of(Status status);

}  // namespace urma::nixl
