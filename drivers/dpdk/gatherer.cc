// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/gatherer.h"

#include "base/copy.h"

namespace urma::drivers::dpdk {
namespace {

// A packet that is being laid out, from its front.
class Chain {
 public:
  Chain(rte_mbuf& head, size_t head_bytes, rte_mempool* pool)
      : head_(head), last_(&head), pool_(pool) {
    head_.data_off = RTE_PKTMBUF_HEADROOM;
    head_.data_len = static_cast<uint16_t>(head_bytes);
    head_.pkt_len = head_.data_len;
  }

  // `copy` and `attach` return false if the pool has no buffer left.
  bool copy(const std::byte* data, size_t bytes) {
    if (bytes == 0) return true;
    if (attached_ && !add_buffer()) return false;
    attached_ = false;
    copy_bytes(rte_pktmbuf_mtod_offset(last_, std::byte*, last_->data_len), data, bytes);
    grow(bytes);
    return true;
  }
  bool attach(const Piece& piece, rte_mbuf_ext_shared_info& shared) {
    if (!add_buffer()) return false;
    attached_ = true;
    rte_mbuf_ext_refcnt_update(&shared, 1);
    // EAL runs with addresses of this process as those of devices (eal.cc).
    rte_pktmbuf_attach_extbuf(last_, const_cast<std::byte*>(piece.data),
                              reinterpret_cast<rte_iova_t>(piece.data),
                              static_cast<uint16_t>(piece.bytes), &shared);
    grow(piece.bytes);
    return true;
  }

 private:
  bool add_buffer() {
    rte_mbuf* const buffer = rte_pktmbuf_alloc(pool_);
    if (buffer == nullptr) return false;
    last_->next = buffer;
    last_ = buffer;
    ++head_.nb_segs;
    return true;
  }
  void grow(size_t bytes) {
    last_->data_len = static_cast<uint16_t>(last_->data_len + bytes);
    head_.pkt_len += static_cast<uint32_t>(bytes);
  }

  rte_mbuf& head_;
  rte_mbuf* last_;
  rte_mempool* const pool_;
  bool attached_ = false;  // whether `last_` has no memory of its own
};

void free_behind(rte_mbuf& head) {
  rte_pktmbuf_free(head.next);
  head.next = nullptr;
  head.nb_segs = 1;
}

}  // namespace

// Returns whether the port reads the piece where it is.
bool Gatherer::stays(const Piece& piece) const {
  if (piece.bytes < settings_.least_bytes) return false;
  return readable_ == nullptr || readable_->has(piece.data, piece.bytes);
}

bool Gatherer::wants(const TxFrame& frame) const {
  if (frames_.full()) return false;
  unsigned large = 0;
  for (unsigned i = 0; i < frame.piece_count; ++i) {
    large += stays(frame.pieces[i]) ? 1 : 0;
  }
  // At most one buffer with copied bytes follows each.
  return large > 0 && 1 + 2 * large <= settings_.most_buffers;
}

bool Gatherer::make_chain(const TxFrame& frame, rte_mbuf& buffer, uint64_t number) {
  rte_mbuf_ext_shared_info& shared = frames_.add(number);
  Chain chain(buffer, frame.head_bytes, settings_.pool);
  bool made = true;
  for (unsigned i = 0; i < frame.piece_count && made; ++i) {
    const Piece& piece = frame.pieces[i];
    made = stays(piece) ? chain.attach(piece, shared) : chain.copy(piece.data, piece.bytes);
  }
  made = made && chain.copy(frame.tail.data(), frame.tail_bytes);
  if (!made) undo_latest(buffer);
  return made;
}

void Gatherer::undo_latest(rte_mbuf& buffer) {
  free_behind(buffer);
  frames_.drop_latest();
}

}  // namespace urma::drivers::dpdk
