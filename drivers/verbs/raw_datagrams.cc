// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/raw_datagrams.h"

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/failed.h"

namespace urma::drivers::verbs {
namespace {

constexpr uint32_t copied_at_once = 256;

// A number at the front of the text, and the character behind it, which are removed.
std::optional<uint32_t> take_number(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end == text.data() + text.size() || *end != ' ') {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

Result<std::unique_ptr<RawDatagramPort>> RawDatagrams::open(const Settings& settings) {
  Result<Adapter> adapter = Adapter::open(settings);
  if (!adapter) return adapter.error();
  std::unique_ptr<RawDatagrams> port(new RawDatagrams(std::move(*adapter)));
  if (auto prepared = port->prepare(); !prepared) return prepared.error();
  return std::unique_ptr<RawDatagramPort>(std::move(port));
}

RawDatagrams::RawDatagrams(Adapter adapter)
    : adapter_(std::move(adapter)),
      memory_(send_count * size_t{adapter_.facts().mtu} + receive_count * buffer_bytes()) {}

Result<void> RawDatagrams::prepare() {
  registered_ = adapter_.register_memory({memory_.data(), memory_.bytes()}, IBV_ACCESS_LOCAL_WRITE);
  if (!registered_) return adapter_.cannot_register(memory_.bytes(), errno);
  Result<DatagramQueue> queue = DatagramQueue::make(
      adapter_, {.sends = send_count, .receives = receive_count, .inline_bytes = copied_at_once});
  if (!queue) return queue.error();
  queue_.emplace(std::move(*queue));
  ibv_port_attr port{};
  if (ibv_query_port(adapter_.context(), adapter_.facts().port, &port) == 0) lid_ = port.lid;
  std::array<uint32_t, receive_count> all;
  for (uint32_t i = 0; i < receive_count; ++i) all[i] = i;
  post(all);
  return {};
}

std::string RawDatagrams::address() const {
  return std::to_string(queue_->pair().qp_num) + " " + std::to_string(lid_) + " " +
         to_string(adapter_.facts().gid.address);
}

Result<void> RawDatagrams::connect(std::string_view address) {
  const std::optional<uint32_t> pair = take_number(address);
  const std::optional<uint32_t> lid = take_number(address);
  const Result<Eid> gid = parse_address(address);
  if (!pair || !lid || *lid > UINT16_MAX || !gid) {
    return failed(Status::invalid_argument, "verbs: the other end has no such queue pair")
        .fix("verbs: devices at both ends");
  }
  ibv_ah_attr to{};
  to.dlid = static_cast<uint16_t>(*lid);
  handle_ = adapter_.make_handle(*gid, to);
  if (!handle_) {
    return failed(Status::no_resources, "verbs: ", adapter_.place(), " finds no way to ",
                  to_string(*gid), ": ", std::strerror(errno))
        .fix("see ip route get, and whether the address answers to ping");
  }
  other_pair_ = *pair;
  return {};
}

std::byte* RawDatagrams::send_buffer(uint64_t number) const {
  return memory_.data() + number % send_count * adapter_.facts().mtu;
}

std::byte* RawDatagrams::receive_buffer(uint32_t index) const {
  return memory_.data() + send_count * size_t{adapter_.facts().mtu} + index * buffer_bytes();
}

// Returns the work that sends this data, from where it is if the adapter copies it at once.
ibv_send_wr RawDatagrams::work(std::span<const std::byte> data, ibv_sge& place) {
  const bool copied = data.size() <= queue_->inline_bytes();
  std::byte* const buffer = send_buffer(posted_);
  if (!copied) std::memcpy(buffer, data.data(), data.size());
  place = {reinterpret_cast<uintptr_t>(copied ? data.data() : buffer),
           static_cast<uint32_t>(data.size()), registered_->lkey};
  ibv_send_wr out{};
  out.wr_id = ++posted_;
  out.sg_list = &place;
  out.num_sge = 1;
  out.opcode = IBV_WR_SEND;
  out.send_flags = copied ? IBV_SEND_INLINE : 0;
  out.wr.ud = {.ah = handle_.get(), .remote_qpn = other_pair_, .remote_qkey = RDMA_UDP_QKEY};
  return out;
}

size_t RawDatagrams::send(std::span<const std::byte> data, size_t frame_bytes) {
  if (failed_ || !handle_) return data.size();
  settle();
  std::array<ibv_send_wr, burst> works;
  std::array<ibv_sge, burst> places;
  size_t count = 0, taken = 0;
  for (; taken < data.size() && count < burst && posted_ - settled_ < send_count; ++count) {
    const auto one = data.subspan(taken, std::min(frame_bytes, data.size() - taken));
    works[count] = work(one, places[count]);
    if (count > 0) works[count - 1].next = &works[count];
    taken += one.size();
  }
  if (count == 0) return 0;
  works[count - 1].send_flags |= IBV_SEND_SIGNALED;
  if (queue_->send(works[0]) != 0) failed_ = true;
  return taken;
}

void RawDatagrams::settle() {
  std::array<ibv_wc, burst> completions;
  const size_t count = queue_->poll_sent(completions);
  if (count == SIZE_MAX) {
    failed_ = true;
    return;
  }
  for (const ibv_wc& one : std::span(completions).first(count)) {
    if (one.status != IBV_WC_SUCCESS) failed_ = true;
    settled_ = std::max(settled_, one.wr_id);
  }
}

void RawDatagrams::post(std::span<const uint32_t> indices) {
  std::array<ibv_recv_wr, burst> works;
  std::array<ibv_sge, burst> places;
  while (!indices.empty()) {
    const size_t count = std::min(indices.size(), burst);
    for (size_t i = 0; i < count; ++i) {
      places[i] = {reinterpret_cast<uintptr_t>(receive_buffer(indices[i])),
                   static_cast<uint32_t>(buffer_bytes()), registered_->lkey};
      works[i] = {.wr_id = indices[i],
                  .next = i + 1 < count ? &works[i + 1] : nullptr,
                  .sg_list = &places[i],
                  .num_sge = 1};
    }
    if (queue_->receive(works[0]) != 0) failed_ = true;
    indices = indices.subspan(count);
  }
}

size_t RawDatagrams::receive(std::span<std::byte> out) {
  std::array<ibv_wc, burst> completions;
  const size_t count = failed_ ? 0 : queue_->poll_received(completions);
  if (count == SIZE_MAX) {
    failed_ = true;
    return 0;
  }
  std::array<uint32_t, burst> taken;
  size_t got = 0;
  for (size_t i = 0; i < count; ++i) {
    const ibv_wc& one = completions[i];
    taken[i] = static_cast<uint32_t>(one.wr_id);
    if (one.status != IBV_WC_SUCCESS) failed_ = true;
    const size_t bytes = one.byte_len > grh_bytes ? one.byte_len - grh_bytes : 0;
    if (failed_ || one.src_qp != other_pair_ || bytes > out.size() - got) continue;
    std::memcpy(out.data() + got, receive_buffer(taken[i]) + grh_bytes, bytes);
    got += bytes;
  }
  if (!failed_) post(std::span(taken).first(count));
  return got;
}

}  // namespace urma::drivers::verbs
