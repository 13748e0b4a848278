// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/datagram_queue.h"

#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/above_standard.h"
#include "base/failed.h"

namespace urma::drivers::verbs {
namespace {

constexpr int most_resets = 8;

size_t poll_queue(ibv_cq* queue, std::span<ibv_wc> out) {
  const int count = ibv_poll_cq(queue, static_cast<int>(out.size()), out.data());
  return count < 0 ? SIZE_MAX : static_cast<size_t>(count);
}

void discard_completions(ibv_cq* queue) {
  std::array<ibv_wc, 64> completions;
  size_t count = completions.size();
  while (count == completions.size()) count = poll_queue(queue, completions);
}

// Makes a queue pair that copies datagrams of the settings' size, or of the largest that the
// adapter copies: it does not say which that is.
QueuePair make_pair(const Adapter& adapter, const DatagramQueue::Settings& settings, ibv_cq* sent,
                    ibv_cq* received, uint32_t& inline_bytes) {
  for (uint32_t bytes = settings.inline_bytes;; bytes = bytes > 32 ? bytes - 32 : 0) {
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_UD;
    wanted.send_cq = sent;
    wanted.recv_cq = received;
    wanted.cap = {.max_send_wr = settings.sends,
                  .max_recv_wr = settings.receives,
                  .max_send_sge = settings.pieces,
                  .max_recv_sge = 1,
                  .max_inline_data = bytes};
    QueuePair pair(ibv_create_qp(adapter.domain(), &wanted));
    inline_bytes = wanted.cap.max_inline_data;
    if (pair || errno != EINVAL || bytes == 0) return pair;
  }
}

}  // namespace

Result<DatagramQueue> DatagramQueue::make(const Adapter& adapter, const Settings& settings) {
  const auto refused = [&](const char* what) {
    return failed(Status::no_resources, "verbs: ", adapter.place(), " gives no ", what, ": ",
                  std::strerror(errno))
        .fix("end other programs that use the adapter, or raise ulimit -l");
  };
  Channel channel(ibv_create_comp_channel(adapter.context()));
  if (!channel) return refused("completion channel");
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  CompletionQueue sent(
      ibv_create_cq(adapter.context(), static_cast<int>(settings.sends), nullptr, nullptr, 0));
  CompletionQueue received(ibv_create_cq(adapter.context(), static_cast<int>(settings.receives),
                                         nullptr, channel.get(), 0));
  if (!sent || !received) return refused("completion queue");
  uint32_t inline_bytes = 0;
  QueuePair pair = make_pair(adapter, settings, sent.get(), received.get(), inline_bytes);
  if (!pair) return refused("queue pair");
  DatagramQueue queue(adapter, std::move(channel), std::move(sent), std::move(received),
                      std::move(pair), inline_bytes);
  if (!queue.start()) return refused("queue pair that works");
  return queue;
}

bool DatagramQueue::start() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port_;
  attributes.qkey = RDMA_UDP_QKEY;
  constexpr int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  if (ibv_modify_qp(pair_.get(), &attributes, init) != 0) return false;
  attributes.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE) != 0) return false;
  attributes.qp_state = IBV_QPS_RTS;
  return ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
}

// The queue pair may fail again before it has started: that does not mean that the adapter is gone.
bool DatagramQueue::reset() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  for (int tries = 0; tries < most_resets; ++tries) {
    if (ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE) != 0) continue;
    // Otherwise the completion queues have no room for what is posted next.
    discard_completions(sent_.get());
    discard_completions(received_.get());
    if (start()) return true;
  }
  return false;
}

int DatagramQueue::send(ibv_send_wr& works) const {
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair_.get(), &works, &refused);
}

int DatagramQueue::receive(ibv_recv_wr& works) const {
  ibv_recv_wr* refused = nullptr;
  return ibv_post_recv(pair_.get(), &works, &refused);
}

size_t DatagramQueue::poll_sent(std::span<ibv_wc> out) const {
  return poll_queue(sent_.get(), out);
}

size_t DatagramQueue::poll_received(std::span<ibv_wc> out) const {
  return poll_queue(received_.get(), out);
}

void DatagramQueue::arm() const { ibv_req_notify_cq(received_.get(), 0); }

void DatagramQueue::disarm() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}

void DatagramQueue::silence() const {
  const int silent = above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (silent < 0) return;
  dup3(silent, channel_->fd, O_CLOEXEC);
  close(silent);
}

}  // namespace urma::drivers::verbs
