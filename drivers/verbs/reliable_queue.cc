// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/reliable_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bits.h"
#include "base/entropy.h"

namespace urma::drivers::verbs {
namespace {

using Description = RemoteAccess::Description;

constexpr auto description_version = std::byte{1};
// A packet is sent again after 4.096 us * 2^13 = 34 ms, and seven times before the pair fails.
constexpr uint8_t acknowledgement_timeout = 13;
constexpr uint8_t most_retries = 7;
constexpr uint8_t receiver_timer = 12;  // no work of ours waits for a receive buffer

// Where the fields of a description lie.
enum Field : size_t {
  version = 0,
  mtu = 1,
  reads = 2,
  pair_number = 4,
  packet = 8,
  lid = 12,
  gid = 16
};
static_assert(gid + sizeof(Eid) <= Description{}.size());

// Returns the number by which libibverbs names an MTU.
uint8_t code_of(uint32_t bytes) { return static_cast<uint8_t>(std::bit_width(bytes / 128) - 1); }

}  // namespace

ReliableQueue::ReliableQueue(const Adapter& adapter, QueuePair pair)
    : adapter_(&adapter),
      pair_(std::move(pair)),
      first_number_(SecureEntropy().next32() & 0xffffff) {}

std::optional<ReliableQueue> ReliableQueue::make(const Adapter& adapter, ibv_cq& completions,
                                                 bool opens) {
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = &completions;
  wanted.recv_cq = &completions;
  wanted.cap = {.max_send_wr = depth,
                .max_recv_wr = 1,
                .max_send_sge = std::min(max_pieces, adapter.facts().most_pieces),
                .max_recv_sge = 1,
                .max_inline_data = 0};
  QueuePair pair(ibv_create_qp(adapter.domain(), &wanted));
  if (!pair) return std::nullopt;
  ReliableQueue queue(adapter, std::move(pair));
  if (!queue.start(opens)) return std::nullopt;
  return queue;
}

bool ReliableQueue::start(bool opens) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = adapter_->facts().port;
  attributes.qp_access_flags = opens ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ : 0;
  constexpr int changed = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  return ibv_modify_qp(pair_.get(), &attributes, changed) == 0;
}

Description ReliableQueue::describe() const {
  const Adapter::Facts& facts = adapter_->facts();
  Description out{};
  out[version] = description_version;
  out[mtu] = std::byte{code_of(facts.mtu)};
  out[reads] = std::byte{facts.reads_in};
  store_be<4>(out.data() + pair_number, pair_->qp_num);
  store_be<4>(out.data() + packet, first_number_);
  store_be<2>(out.data() + lid, facts.lid);
  std::copy_n(facts.gid.address.bytes.begin(), sizeof(Eid), out.begin() + gid);
  return out;
}

bool ReliableQueue::is_end_at(const Description& end, const Eid& address) {
  return end[version] == description_version && end[reads] != std::byte{0} &&
         std::equal(address.bytes.begin(), address.bytes.end(), end.begin() + gid);
}

bool ReliableQueue::connect(const Description& other) {
  const Adapter::Facts& facts = adapter_->facts();
  Eid address;
  std::copy_n(other.begin() + gid, sizeof(Eid), address.bytes.begin());
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = adapter_->way_to(address, {});
  attributes.ah_attr.dlid = static_cast<uint16_t>(load_be<2>(other.data() + lid));
  attributes.path_mtu =
      static_cast<ibv_mtu>(std::min(code_of(facts.mtu), std::to_integer<uint8_t>(other[mtu])));
  attributes.dest_qp_num = static_cast<uint32_t>(load_be<4>(other.data() + pair_number));
  attributes.rq_psn = static_cast<uint32_t>(load_be<4>(other.data() + packet));
  attributes.max_dest_rd_atomic = facts.reads_in;
  attributes.min_rnr_timer = receiver_timer;
  constexpr int ready = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(pair_.get(), &attributes, ready) != 0) return false;
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = acknowledgement_timeout;
  attributes.retry_cnt = most_retries;
  attributes.rnr_retry = most_retries;
  attributes.sq_psn = first_number_;
  attributes.max_rd_atomic = std::min(facts.reads_out, std::to_integer<uint8_t>(other[reads]));
  constexpr int sending = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(pair_.get(), &attributes, sending) == 0;
}

}  // namespace urma::drivers::verbs
