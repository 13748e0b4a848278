// SPDX-License-Identifier: Apache-2.0
// The calls of the data path, for counting the instructions of the driver alone.

#include "tests/verbs/soft_objects.h"

namespace urma::test::soft {
namespace {

constexpr size_t most_buffers = 1 << 16;          // that are posted while instructions are counted
constexpr uint32_t datagram_bytes = 40 + 8 + 64;  // GRH, front, packet

int post_send(ibv_qp* to, ibv_send_wr* works, ibv_send_wr**) {
  auto& pair = static_cast<SoftPair&>(*to);
  while (works->next != nullptr) works = works->next;
  pair.pretended.sent = works->wr_id;
  return 0;
}

int post_recv(ibv_qp* to, ibv_recv_wr* works, ibv_recv_wr**) {
  auto& buffers = static_cast<SoftPair&>(*to).pretended.buffers;
  for (; works != nullptr; works = works->next) buffers.push_back(works->wr_id);
  return 0;
}

int poll_cq(ibv_cq* from, int most, ibv_wc* out) {
  auto& pair = *static_cast<SoftPair*>(from->cq_context);
  SoftPair::Pretended& pretended = pair.pretended;
  if (from == pair.send_cq) {
    if (!pretended.sent) return 0;
    out->wr_id = *pretended.sent;
    out->status = IBV_WC_SUCCESS;
    pretended.sent.reset();
    return 1;
  }
  int count = 0;
  for (; count < most && pretended.next < pretended.buffers.size(); ++count) {
    ibv_wc& one = out[count];
    one.wr_id = pretended.buffers[pretended.next++];
    one.status = IBV_WC_SUCCESS;
    one.byte_len = datagram_bytes;
    one.wc_flags = IBV_WC_GRH;
  }
  return count;
}

}  // namespace

void only_pretend() {
  const std::lock_guard lock(Fabric::the().mutex);
  for (SoftPair* pair : Fabric::the().pairs) {
    pair->pretended.buffers.reserve(most_buffers);
    for (const auto& one : pair->receives) pair->pretended.buffers.push_back(one.id);
  }
  for (SoftContext* context : Fabric::the().contexts) {
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
  }
}

}  // namespace urma::test::soft
