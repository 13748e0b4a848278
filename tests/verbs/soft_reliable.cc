// SPDX-License-Identifier: Apache-2.0
// Reliable-connected (RC) queue pairs: how they are connected, and their RDMA writes and reads.

#include <algorithm>
#include <cstring>

#include "tests/verbs/soft_objects.h"

namespace urma::test::soft {
namespace {

constexpr uint32_t most_24_bits = 0xffffff;

// A change of state, and the attributes that it must and may have: InfiniBand Architecture
// Specification, volume 1, 11.2.5.2.
struct Change {
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;
  int allowed;
};
constexpr Change changes[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

bool may_change(ibv_qp_state from, ibv_qp_state to, int changed) {
  const int rest = changed & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return rest == 0;
  return std::ranges::any_of(changes, [&](const Change& one) {
    return one.from == from && one.to == to && (rest & one.needed) == one.needed &&
           (rest & ~(one.needed | one.allowed)) == 0;
  });
}

// How many versions of RoCE each address has an index for.
size_t versions_of(const AdapterFacts& facts) { return facts.link == Link::roce ? 2 : 1; }

bool is_valid(const ibv_ah_attr& path, const AdapterFacts& facts) {
  if (path.port_num != 1) return false;
  if (path.is_global == 0) return facts.link == Link::infiniband;
  return path.grh.sgid_index < facts.addresses.size() * versions_of(facts) &&
         address_of(path.grh.dgid) != Eid{};
}

// A time-out of 0 stands for an infinite one, with which works to a lost peer never end: refused,
// though an adapter takes it.
bool are_valid(const ibv_qp_attr& to, int changed, const SoftDevice& device) {
  const auto has = [&](int attribute, bool valid) { return (changed & attribute) == 0 || valid; };
  return has(IBV_QP_PKEY_INDEX, to.pkey_index == 0) && has(IBV_QP_PORT, to.port_num == 1) &&
         has(IBV_QP_AV, is_valid(to.ah_attr, device.facts)) &&
         has(IBV_QP_PATH_MTU, to.path_mtu >= IBV_MTU_256 && to.path_mtu <= device.active_mtu()) &&
         has(IBV_QP_DEST_QPN, to.dest_qp_num <= most_24_bits) &&
         has(IBV_QP_RQ_PSN, to.rq_psn <= most_24_bits) &&
         has(IBV_QP_SQ_PSN, to.sq_psn <= most_24_bits) &&
         has(IBV_QP_MAX_DEST_RD_ATOMIC, to.max_dest_rd_atomic <= most_reads) &&
         has(IBV_QP_MAX_QP_RD_ATOMIC, to.max_rd_atomic <= most_reads) &&
         has(IBV_QP_MIN_RNR_TIMER, to.min_rnr_timer < 32) &&
         has(IBV_QP_TIMEOUT, to.timeout > 0 && to.timeout < 32) &&
         has(IBV_QP_RETRY_CNT, to.retry_cnt < 8) && has(IBV_QP_RNR_RETRY, to.rnr_retry < 8);
}

// Returns whether packets that `from` addresses arrive at the port, and with the address, of `to`.
bool leads_to(const SoftPair& from, const SoftPair& to) {
  const ibv_ah_attr& path = from.attributes.ah_attr;
  const ibv_ah_attr& back = to.attributes.ah_attr;
  const SoftDevice& there = to.owner().adapter();
  if (from.owner().adapter().facts.link != there.facts.link) return false;
  if (path.dlid != there.lid && there.facts.link == Link::infiniband) return false;
  if (path.is_global == 0 || back.is_global == 0) return path.is_global == back.is_global;
  const size_t versions = versions_of(there.facts);
  return path.grh.sgid_index % versions == back.grh.sgid_index % versions &&
         address_of(path.grh.dgid) == there.facts.addresses[back.grh.sgid_index / versions];
}

// Returns the pair at the other end, or null if it accepts no packet of this one.
SoftPair* peer_of(const SoftPair& pair) {
  SoftPair* const peer = Fabric::the().pair(pair.attributes.dest_qp_num);
  if (peer == nullptr || !peer->reliable() || peer->owner().adapter().removed) return nullptr;
  const bool accepts = (peer->state == IBV_QPS_RTR || peer->state == IBV_QPS_RTS) &&
                       peer->attributes.dest_qp_num == pair.qp_num && leads_to(pair, *peer) &&
                       leads_to(*peer, pair) && peer->attributes.rq_psn == pair.attributes.sq_psn;
  return accepts ? peer : nullptr;
}

bool reads(const SoftPair::Send& send) { return send.work.opcode == IBV_WR_RDMA_READ; }

size_t bytes_of(const SoftPair::Send& send) {
  size_t bytes = 0;
  for (const ibv_sge& part : send.parts) bytes += part.length;
  return bytes;
}

// Returns how a work ends if the pair and its peer do as they are told.
ibv_wc_status check(const SoftPair& pair, const SoftPair::Send& send, const SoftPair* peer) {
  Fabric& all = Fabric::the();
  const bool copied = (send.work.send_flags & IBV_SEND_INLINE) != 0;
  const bool ours = copied || std::ranges::all_of(send.parts, [&](const ibv_sge& part) {
                      return all.memory(pair.pd, &ibv_mr::lkey, {part.addr, part.length, part.lkey},
                                        reads(send) ? IBV_ACCESS_LOCAL_WRITE : 0) != nullptr;
                    });
  if (!ours) return IBV_WC_LOC_PROT_ERR;
  if (reads(send) && pair.attributes.max_rd_atomic == 0) return IBV_WC_LOC_QP_OP_ERR;
  if (peer == nullptr) return IBV_WC_RETRY_EXC_ERR;
  // An adapter notices either only once there are so many packets, or reads, at the same time.
  if (pair.attributes.path_mtu != peer->attributes.path_mtu) return IBV_WC_REM_INV_REQ_ERR;
  if (reads(send) && pair.attributes.max_rd_atomic > peer->attributes.max_dest_rd_atomic) {
    return IBV_WC_REM_INV_REQ_ERR;
  }
  const int access = reads(send) ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  const size_t bytes = bytes_of(send);
  const Place place{send.work.wr.rdma.remote_addr, bytes, send.work.wr.rdma.rkey};
  const bool allowed = (static_cast<int>(peer->attributes.qp_access_flags) & access) != 0;
  // The key of an access without bytes is not checked.
  const bool theirs = bytes == 0 || all.memory(peer->pd, &ibv_mr::rkey, place, access) != nullptr;
  return allowed && theirs ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

void move_bytes(const SoftPair::Send& send) {
  auto* there = reinterpret_cast<std::byte*>(send.work.wr.rdma.remote_addr);
  if (!send.copied.empty()) std::memmove(there, send.copied.data(), send.copied.size());
  if ((send.work.send_flags & IBV_SEND_INLINE) != 0) return;
  for (const ibv_sge& part : send.parts) {
    if (part.length == 0) continue;
    auto* const here = reinterpret_cast<std::byte*>(part.addr);
    reads(send) ? std::memmove(here, there, part.length) : std::memmove(there, here, part.length);
    there += part.length;
  }
}

// Both ends count the packets of a work.
void count_packets(SoftPair& pair, SoftPair& peer, size_t bytes) {
  const size_t most = size_t{128} << pair.attributes.path_mtu;
  const auto packets = static_cast<uint32_t>(std::max<size_t>((bytes + most - 1) / most, 1));
  pair.attributes.sq_psn = (pair.attributes.sq_psn + packets) & most_24_bits;
  peer.attributes.rq_psn = (peer.attributes.rq_psn + packets) & most_24_bits;
}

}  // namespace

bool takes(const SoftPair& pair, const ibv_send_wr& work) {
  if (!pair.reliable()) {
    return work.opcode == IBV_WR_SEND || work.opcode == IBV_WR_SEND_WITH_IMM;
  }
  const bool copied = (work.send_flags & IBV_SEND_INLINE) != 0;
  return work.opcode == IBV_WR_RDMA_WRITE || (work.opcode == IBV_WR_RDMA_READ && !copied);
}

bool take_attributes(SoftPair& pair, const ibv_qp_attr& to, int changed) {
  if (!may_change(pair.state, to.qp_state, changed)) return false;
  if (!are_valid(to, changed, pair.owner().adapter())) return false;
  ibv_qp_attr& own = pair.attributes;
  const auto take = [&](int attribute, auto ibv_qp_attr::*field) {
    if ((changed & attribute) != 0) own.*field = to.*field;
  };
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  return true;
}

void carry_reliable(SoftPair& pair, const SoftPair::Send& send) {
  Fabric& all = Fabric::the();
  SoftPair* const peer = peer_of(pair);
  const ibv_wc_status status = check(pair, send, peer);
  if (status == IBV_WC_SUCCESS) {
    move_bytes(send);
    count_packets(pair, *peer, bytes_of(send));
  }
  pair.complete(send, status);
  if (status == IBV_WC_SUCCESS) return;
  all.fail(pair, Failure::reported);
  const bool access = status == IBV_WC_REM_ACCESS_ERR;
  if ((!access && status != IBV_WC_REM_INV_REQ_ERR) || peer == &pair) return;
  all.fail(*peer, Failure::reported, access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
}

size_t fail_reliable_pairs(const std::string& name, Failure how) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  size_t failed = 0;
  for (SoftPair* one : all.pairs) {
    if (!one->reliable() || one->owner().adapter().facts.name != name) continue;
    all.fail(*one, how);
    ++failed;
  }
  return failed;
}

void hold_remote_accesses(bool hold) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  all.holds = hold;
  for (SoftPair* one : all.pairs) {
    while (all.carries(*one) && all.late_polls == 0 && !one->sends.empty()) one->carry_first();
  }
}

std::vector<uint32_t> reliable_pairs() {
  const std::lock_guard lock(Fabric::the().mutex);
  std::vector<uint32_t> out;
  for (const SoftPair* one : Fabric::the().pairs) {
    if (one->state == IBV_QPS_RTS && one->reliable()) out.push_back(one->qp_num);
  }
  return out;
}

}  // namespace urma::test::soft
