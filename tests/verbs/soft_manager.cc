// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm that the driver calls: one device asks at an address which queue pair
// has a service number (SIDR).

#include <infiniband/ib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/socket_address.h"
#include "tests/verbs/soft_objects.h"

namespace urma::test::soft {

void SoftEvents::add(SoftId& id, rdma_cm_event_type type, int status, const rdma_ud_param& found) {
  rdma_cm_event event{};
  event.id = &id;
  event.event = type;
  event.status = status;
  event.param.ud = found;
  events.push_back(event);
  signals.add();
}

namespace {

Endpoint endpoint_of(const sockaddr& address) {
  if (address.sa_family != AF_IB) return from_sockaddr(address);
  const auto& of = reinterpret_cast<const sockaddr_ib&>(address);
  Endpoint out;
  std::memcpy(out.address.bytes.data(), &of.sib_addr, sizeof of.sib_addr);
  out.port = static_cast<uint16_t>(be64toh(of.sib_sid));
  return out;
}

SoftId* listener_at(const Endpoint& at) {
  for (SoftId* one : Fabric::the().ids) {
    if (one->listens && one->own == at) return one;
  }
  return nullptr;
}

SoftId* new_id(rdma_event_channel* channel) {
  auto* const id = new SoftId{};
  id->channel = channel;
  id->ps = RDMA_PS_UDP;
  Fabric::the().ids.push_back(id);
  return id;
}

}  // namespace
}  // namespace urma::test::soft

using namespace urma::test::soft;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  auto* const channel = Fabric::the().made(new SoftEvents{});
  channel->fd = channel->signals.fd();
  return channel;
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  auto* const own = static_cast<SoftEvents*>(channel);
  {
    Fabric& all = Fabric::the();
    const std::lock_guard lock(all.mutex);
    // The driver destroys the ids of those requests only that it has read.
    for (const rdma_cm_event& event : own->events) {
      if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST) continue;
      std::erase(all.ids, event.id);
      delete static_cast<SoftId*>(event.id);
    }
  }
  Fabric::the().ended(own);
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void*, rdma_port_space) {
  const std::lock_guard lock(Fabric::the().mutex);
  *out = new_id(channel);
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  auto* const one = static_cast<SoftId*>(id);
  for (const rdma_cm_event& event : one->events().events) {
    if (event.id == id) one->events().signals.take();
  }
  std::erase_if(one->events().events, [&](const auto& event) { return event.id == id; });
  for (SoftId* other : all.ids) {
    if (other->asked_by == one) other->asked_by = nullptr;
  }
  std::erase(all.ids, one);
  delete one;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  urma::Endpoint at = endpoint_of(*address);
  if (all.device(at.address) == nullptr) return errno = EADDRNOTAVAIL, -1;
  if (at.port == 0) at.port = all.next_service++;
  if (std::ranges::any_of(all.ids, [&](const SoftId* one) { return one->own == at; })) {
    return errno = EADDRINUSE, -1;
  }
  static_cast<SoftId*>(id)->own = at;
  return 0;
}
int rdma_listen(rdma_cm_id* id, int) {
  const std::lock_guard lock(Fabric::the().mutex);
  static_cast<SoftId*>(id)->listens = true;
  return 0;
}
uint16_t rdma_get_src_port(rdma_cm_id* id) {
  const std::lock_guard lock(Fabric::the().mutex);
  return htons(static_cast<SoftId*>(id)->own.port);
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr* to, int) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& one = static_cast<SoftId&>(*id);
  one.peer = endpoint_of(*to);
  if (!Fabric::the().muted) one.events().add(one, RDMA_CM_EVENT_ADDR_RESOLVED);
  return 0;
}
int rdma_resolve_route(rdma_cm_id* id, int) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& one = static_cast<SoftId&>(*id);
  one.events().add(one, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}
int rdma_connect(rdma_cm_id* id, rdma_conn_param*) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& one = static_cast<SoftId&>(*id);
  SoftId* const listener = listener_at(one.peer);
  const SoftDevice* const there = Fabric::the().device(one.peer.address);
  if (there == nullptr || there->removed) return 0;
  if (listener == nullptr) {
    one.events().add(one, RDMA_CM_EVENT_UNREACHABLE, EINVAL);
    return 0;
  }
  SoftId* const request = new_id(listener->channel);
  request->asked_by = &one;
  listener->events().add(*request, RDMA_CM_EVENT_CONNECT_REQUEST);
  return 0;
}
int rdma_accept(rdma_cm_id* id, rdma_conn_param* answer) {
  const std::lock_guard lock(Fabric::the().mutex);
  SoftId* const to = static_cast<SoftId*>(id)->asked_by;
  rdma_ud_param found{};
  found.qp_num = answer->qp_num;
  found.qkey = RDMA_UDP_QKEY;
  if (to != nullptr) to->events().add(*to, RDMA_CM_EVENT_ESTABLISHED, 0, found);
  return 0;
}
int rdma_reject(rdma_cm_id* id, const void*, uint8_t) {
  const std::lock_guard lock(Fabric::the().mutex);
  SoftId* const to = static_cast<SoftId*>(id)->asked_by;
  if (to != nullptr) to->events().add(*to, RDMA_CM_EVENT_UNREACHABLE, EINVAL);
  return 0;
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** out) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& from = static_cast<SoftEvents&>(*channel);
  if (from.events.empty()) return errno = EAGAIN, -1;
  from.signals.take();
  *out = new rdma_cm_event(from.events.front());
  from.events.pop_front();
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return 0;
}

}  // extern "C"
