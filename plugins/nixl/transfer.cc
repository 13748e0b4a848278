// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/transfer.h"

#include <algorithm>

namespace urma::nixl {
namespace {

bool continues(const Piece& last, const Piece& next) {
  return last.here + last.bytes == next.here && last.offset + last.bytes == next.offset &&
         last.there.token_id == next.there.token_id && last.there.peer == next.there.peer;
}

}  // namespace

void append(std::vector<Piece>& pieces, Piece piece) {
  if (!pieces.empty() && continues(pieces.back(), piece)) {
    Piece& last = pieces.back();
    const uint64_t more = std::min(piece.bytes, max_write_bytes - last.bytes);
    last.bytes += more;
    piece.here += more;
    piece.offset += more;
    piece.bytes -= more;
    if (piece.bytes == 0) return;
  }
  while (piece.bytes > max_write_bytes) {
    pieces.push_back(piece);
    pieces.back().bytes = max_write_bytes;
    piece.here += max_write_bytes;
    piece.offset += max_write_bytes;
    piece.bytes -= max_write_bytes;
  }
  pieces.push_back(piece);
}

void Transfer::begin(std::vector<std::vector<std::byte>> messages) {
  messages_ = std::move(messages);
  next_ = 0;
  failure_ = Status::ok;
}

size_t Transfer::postable() const {
  if (next_ < pieces_.size()) return pieces_.size() - next_;
  if (next_ >= size()) return 0;
  return next_ > pieces_.size() || outstanding_ == 0 ? size() - next_ : 0;
}

Work Transfer::work(size_t ahead, const RemoteJetty& mailbox) const {
  const size_t index = next_ + ahead;
  if (index >= pieces_.size()) return send(messages_[index - pieces_.size()], mailbox);
  const Piece& piece = pieces_[index];
  const std::span<std::byte> here(piece.here, piece.bytes);
  return operation_ == Operation::read ? read(here, piece.there, piece.offset)
                                       : write(here, piece.there, piece.offset);
}

void Transfer::ended(Status status) {
  --outstanding_;
  if (status != Status::ok) fail(status);
}

void Transfer::fail(Status status) {
  if (failure_ == Status::ok) failure_ = status;
  next_ = size();
}

nixl_status_t Transfer::status() const {
  if (next_ == SIZE_MAX) return NIXL_ERR_NOT_POSTED;
  if (active()) return NIXL_IN_PROG;
  return status_of(failure_);
}

nixl_status_t status_of(Status status) {
  switch (status) {
    case Status::ok:
      return NIXL_SUCCESS;
    case Status::bad_work:
    case Status::invalid_argument:
      return NIXL_ERR_INVALID_PARAM;
    case Status::version_mismatch:
      return NIXL_ERR_MISMATCH;
    case Status::not_found:
      return NIXL_ERR_NOT_FOUND;
    case Status::unknown:
    case Status::flushed:
    case Status::remote_access:
    case Status::remote_unsupported:
    case Status::peer_unreachable:
    case Status::peer_restarted:
    case Status::timed_out:
      return NIXL_ERR_REMOTE_DISCONNECT;
    default:
      return NIXL_ERR_BACKEND;
  }
}

}  // namespace urma::nixl
