// SPDX-License-Identifier: Apache-2.0
// The functions of libibverbs that the driver calls, on adapters of this process. What only RC
// pairs do is in soft_reliable.cc.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "tests/verbs/soft_objects.h"

namespace urma::test::soft {
namespace {

using Lock = std::lock_guard<std::mutex>;
constexpr size_t header_bytes = 40;

// Returns the object behind what the driver knows.
template <class Soft, class Base>
Soft& soft(Base* base) {
  return static_cast<Soft&>(*base);
}

bool is_ipv4(const Eid& address) { return Endpoint{address, 0}.is_ipv4(); }

// Writes the Global Routing Header that a receiver finds in front of a datagram.
void write_header(std::byte* out, const Eid& from) {
  std::fill_n(out, header_bytes, std::byte{0});
  if (is_ipv4(from)) {
    out[20] = std::byte{0x45};
    std::copy_n(from.bytes.begin() + 12, 4, out + 32);
  } else {
    out[0] = std::byte{0x60};
    std::copy_n(from.bytes.begin(), 16, out + 8);
  }
}

bool may_access(const SoftPair& pair, const ibv_sge& part, int access) {
  const Place place{part.addr, part.length, part.lkey};
  return Fabric::the().memory(pair.pd, &ibv_mr::lkey, place, access) != nullptr;
}

// Appends the bytes of a work. Returns false if the adapter may not read them.
bool gather(const SoftPair& pair, const SoftPair::Send& send, std::vector<std::byte>& out) {
  out = send.copied;
  if ((send.work.send_flags & IBV_SEND_INLINE) != 0) return true;
  for (const ibv_sge& part : send.parts) {
    if (!may_access(pair, part, 0)) return false;
    const auto* const begin = reinterpret_cast<const std::byte*>(part.addr);
    out.insert(out.end(), begin, begin + part.length);
  }
  return true;
}

void carry_datagram(SoftPair& pair, const SoftPair::Send& send) {
  Fabric& all = Fabric::the();
  std::vector<std::byte> bytes;
  if (!gather(pair, send, bytes)) {
    pair.complete(send, IBV_WC_LOC_PROT_ERR);
    return all.fail(pair, Failure::reported);
  }
  const SoftDevice& own = pair.owner().adapter();
  const auto& to = soft<SoftHandle>(send.work.wr.ud.ah).attributes;
  const SoftDevice* const peer = all.device(address_of(to.grh.dgid));
  const bool lost = peer == nullptr || peer->removed || bytes.size() > own.facts.mtu ||
                    bytes.size() > peer->facts.mtu || all.prng.unit() < all.loss;
  if (!lost) {
    const size_t versions = own.facts.link == Link::roce ? 2 : 1;
    all.deliver({.from = own.facts.addresses[to.grh.sgid_index / versions],
                 .from_pair = pair.qp_num,
                 .to_pair = send.work.wr.ud.remote_qpn,
                 .bytes = bytes},
                send.work.wr.ud.remote_qkey);
  }
  pair.complete(send, IBV_WC_SUCCESS);
}

SoftPair::Send take(const ibv_send_wr& work, uint64_t number) {
  SoftPair::Send out{number, work, {work.sg_list, work.sg_list + work.num_sge}, {}};
  if ((work.send_flags & IBV_SEND_INLINE) == 0) return out;
  for (const ibv_sge& part : out.parts) {
    const auto* const begin = reinterpret_cast<const std::byte*>(part.addr);
    out.copied.insert(out.copied.end(), begin, begin + part.length);
  }
  return out;
}

int post_send(ibv_qp* to, ibv_send_wr* works, ibv_send_wr** refused) {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  auto& pair = soft<SoftPair>(to);
  for (ibv_send_wr* work = works; work != nullptr; work = work->next) {
    size_t bytes = 0;
    for (int i = 0; i < work->num_sge; ++i) bytes += work->sg_list[i].length;
    const bool copied = (work->send_flags & IBV_SEND_INLINE) != 0;
    const bool wrong = (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) ||
                       !takes(pair, *work) ||
                       work->num_sge > static_cast<int>(pair.room.max_send_sge) ||
                       (copied && bytes > pair.room.max_inline_data);
    *refused = work;
    if (wrong) return EINVAL;
    if (pair.posted - pair.freed >= pair.room.max_send_wr) return ENOMEM;
    if (!pair.owner().adapter().removed) pair.sends.push_back(take(*work, ++pair.posted));
  }
  const bool now = all.carries(pair) || pair.state == IBV_QPS_ERR;
  while (now && all.late_polls == 0 && !pair.sends.empty()) pair.carry_first();
  return 0;
}

int post_recv(ibv_qp* to, ibv_recv_wr* works, ibv_recv_wr** refused) {
  const Lock lock(Fabric::the().mutex);
  auto& pair = soft<SoftPair>(to);
  for (ibv_recv_wr* work = works; work != nullptr; work = work->next) {
    *refused = work;
    if (pair.state == IBV_QPS_RESET || work->num_sge != 1) return EINVAL;
    if (pair.receives.size() >= pair.room.max_recv_wr) return ENOMEM;
    pair.receives.push_back({work->wr_id, *work->sg_list});
  }
  return 0;
}

int poll_cq(ibv_cq* from, int most, ibv_wc* out) {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  auto& queue = soft<SoftQueue>(from);
  for (SoftPair* pair : all.pairs) {
    if (pair->send_cq != from || pair->sends.empty() || !all.carries(*pair)) continue;
    if (++pair->polls % std::max<size_t>(all.late_polls, 1) == 0) pair->carry_first();
  }
  int count = 0;
  for (; count < most && !queue.entries.empty(); ++count) {
    const SoftQueue::Entry& first = queue.entries.front();
    out[count] = first.completion;
    SoftPair* const pair = all.pair(first.completion.qp_num);
    if (pair != nullptr) pair->freed = std::max(pair->freed, first.work);
    queue.entries.pop_front();
  }
  return count;
}

int req_notify_cq(ibv_cq* queue, int) {
  const Lock lock(Fabric::the().mutex);
  soft<SoftQueue>(queue).armed = true;
  return 0;
}

template <class Soft>
void forget(std::vector<Soft*>& all, Soft& one) {
  std::erase(all, &one);
}

}  // namespace

Eid address_of(const ibv_gid& gid) {
  Eid out;
  std::memcpy(out.bytes.data(), gid.raw, sizeof gid.raw);
  return out;
}

void SoftPair::complete(const Send& send, ibv_wc_status status) {
  const bool signalled = all_signalled || (send.work.send_flags & IBV_SEND_SIGNALED) != 0;
  if (!signalled && status == IBV_WC_SUCCESS) return;
  ibv_wc completion{};
  completion.wr_id = send.work.wr_id;
  completion.status = status;
  completion.qp_num = qp_num;
  if (status == IBV_WC_SUCCESS) {  // no opcode otherwise, as on hardware
    completion.opcode = send.work.opcode == IBV_WR_RDMA_WRITE  ? IBV_WC_RDMA_WRITE
                        : send.work.opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
                                                               : IBV_WC_SEND;
    const bool read = completion.opcode == IBV_WC_RDMA_READ;
    for (const ibv_sge& part : send.parts) completion.byte_len += read ? part.length : 0;
  }
  sent().add({completion, send.number});
}

void SoftPair::carry_first() {
  const Send send = std::move(sends.front());
  sends.pop_front();
  if (state == IBV_QPS_ERR) return complete(send, IBV_WC_WR_FLUSH_ERR);
  reliable() ? carry_reliable(*this, send) : carry_datagram(*this, send);
}

void SoftPair::flush() {
  for (const Receive& one : std::exchange(receives, {})) {
    ibv_wc completion{};
    completion.wr_id = one.id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    received().add({completion});
  }
  while (!sends.empty()) carry_first();
}

void SoftQueue::add(const Entry& entry) {
  // As on hardware, whose queue fails for good.
  if (entries.size() >= static_cast<size_t>(cqe)) std::abort();
  entries.push_back(entry);
  if (!std::exchange(armed, false) || channel == nullptr) return;
  auto& to = soft<SoftChannel>(channel);
  to.events.push_back(this);
  to.signals.add();
}

Fabric& Fabric::the() {
  static Fabric fabric;
  return fabric;
}

SoftDevice* Fabric::device(const Eid& address) {
  for (SoftDevice& one : devices) {
    if (std::ranges::count(one.facts.addresses, address) > 0) return &one;
  }
  return nullptr;
}

SoftPair* Fabric::pair(uint32_t number) {
  const auto found = std::ranges::find(pairs, number, &SoftPair::qp_num);
  return found == pairs.end() ? nullptr : *found;
}

SoftMemory* Fabric::memory(const ibv_pd* domain, uint32_t ibv_mr::*kind, const Place& place,
                           int access) {
  for (SoftMemory* one : memories) {
    if (one->*kind != place.key) continue;
    return one->pd == domain && one->covers(place, access) ? one : nullptr;
  }
  return nullptr;
}

void Fabric::fail(SoftPair& pair, Failure how, ibv_event_type event) {
  pair.state = IBV_QPS_ERR;
  if (how == Failure::silent) return;
  pair.flush();
  ibv_async_event report{};
  report.event_type = event;
  report.element.qp = &pair;
  pair.owner().events.push_back(report);
  pair.owner().signals.add();
}

bool Fabric::carries(const SoftPair& pair) const {
  return !pair.reliable() || (!holds && !pair.owner().adapter().removed);
}

bool Fabric::deliver(const Forged& datagram, uint32_t key) {
  SoftPair* const to = pair(datagram.to_pair);
  if (to == nullptr || to->reliable() || to->key != key) return false;
  if (to->owner().adapter().removed) return false;
  if ((to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS) || to->receives.empty()) return false;
  const SoftPair::Receive into = to->receives.front();
  to->receives.pop_front();
  ibv_wc completion{};
  completion.wr_id = into.id;
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = to->qp_num;
  completion.src_qp = datagram.from_pair;
  completion.wc_flags = datagram.routed ? IBV_WC_GRH : 0;
  completion.byte_len = static_cast<uint32_t>(header_bytes + datagram.bytes.size());
  const bool fits = completion.byte_len <= into.place.length;
  if (!fits || !may_access(*to, into.place, IBV_ACCESS_LOCAL_WRITE)) {
    completion.status = fits ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR;
    to->received().add({completion});
    fail(*to, Failure::reported);
    return false;
  }
  auto* const place = reinterpret_cast<std::byte*>(into.place.addr);
  write_header(place, datagram.from);
  std::ranges::copy(datagram.bytes, place + header_bytes);
  to->received().add({completion});
  return true;
}

// ---- soft_adapters.h

void plug_in(const AdapterFacts& facts) {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  SoftDevice& device = all.devices.emplace_back();
  device.facts = facts;
  if (facts.link == Link::infiniband) device.lid = all.next_lid++;
  device.transport_type = facts.link == Link::iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  facts.name.copy(static_cast<ibv_device&>(device).name, IBV_SYSFS_NAME_MAX - 1);
}

void clear() {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  all.devices.clear();
  all.loss = 0;
  all.late_polls = 0;
  all.muted = false;
  all.holds = false;
  all.failing_starts = 0;
}

void remove(const std::string& name) {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  for (SoftDevice& one : all.devices) one.removed = one.removed || one.facts.name == name;
  for (SoftContext* context : all.contexts) {
    if (!context->adapter().removed) continue;
    context->events.push_back({.element = {}, .event_type = IBV_EVENT_DEVICE_FATAL});
    context->signals.add();
  }
}

size_t fail_queue_pairs(const std::string& name, Failure how) {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  size_t failed = 0;
  for (SoftPair* one : all.pairs) {
    if (one->owner().adapter().facts.name != name) continue;
    all.fail(*one, how);
    ++failed;
  }
  return failed;
}

void fail_starts(size_t times) {
  const Lock lock(Fabric::the().mutex);
  Fabric::the().failing_starts = times;
}

void lose(double share) {
  const Lock lock(Fabric::the().mutex);
  Fabric::the().loss = share;
}

void send_late(size_t polls) {
  const Lock lock(Fabric::the().mutex);
  Fabric::the().late_polls = polls;
}

void mute_manager(bool muted) {
  const Lock lock(Fabric::the().mutex);
  Fabric::the().muted = muted;
}

bool deliver(const Forged& datagram) {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  const SoftPair* const to = all.pair(datagram.to_pair);
  return to != nullptr && all.deliver(datagram, to->key);
}

std::vector<uint32_t> receiving_pairs() {
  const Lock lock(Fabric::the().mutex);
  std::vector<uint32_t> out;
  for (const SoftPair* one : Fabric::the().pairs) {
    if (one->state == IBV_QPS_RTS && !one->reliable()) out.push_back(one->qp_num);
  }
  return out;
}

size_t objects() {
  Fabric& all = Fabric::the();
  const Lock lock(all.mutex);
  return all.contexts.size() + all.pairs.size() + all.memories.size() + all.ids.size() + all.others;
}

}  // namespace urma::test::soft

// ---- libibverbs

using namespace urma::test::soft;

// Macros of the header, whose functions are defined here.
#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  auto** const list = new ibv_device*[all.devices.size() + 1]();
  *count = 0;
  for (SoftDevice& one : all.devices) {
    if (!one.removed) list[(*count)++] = &one;
  }
  return list;
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  errno = static_cast<SoftDevice*>(device)->facts.opens;
  if (errno != 0) return nullptr;
  auto* const context = new SoftContext{};
  context->device = device;
  context->async_fd = context->signals.fd();
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  all.contexts.push_back(context);
  return context;
}
int ibv_close_device(ibv_context* context) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto* const one = static_cast<SoftContext*>(context);
  forget(Fabric::the().contexts, *one);
  delete one;
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  const AdapterFacts& facts = static_cast<SoftContext*>(context)->adapter().facts;
  *out = {};
  out->phys_port_cnt = 1;
  out->max_sge = facts.most_pieces;
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = most_reads;
  out->vendor_id = 0x1234;
  return 0;
}
int ibv_query_port(ibv_context* context, uint8_t, _compat_ibv_port_attr* out) {
  const SoftDevice& device = static_cast<SoftContext*>(context)->adapter();
  auto& port = *reinterpret_cast<ibv_port_attr*>(out);
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = device.active_mtu();
  port.lid = device.lid;
  port.link_layer =
      device.facts.link == Link::infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  port.active_width = 2;
  port.active_speed = 32;
  return 0;
}
ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* out, size_t most, uint32_t,
                             size_t) {
  const AdapterFacts& facts = static_cast<SoftContext*>(context)->adapter().facts;
  size_t count = 0;
  const auto add = [&](const urma::Eid& address, uint32_t type) {
    if (count == most) return;
    out[count] = {};
    std::memcpy(out[count].gid.raw, address.bytes.data(), sizeof out->gid.raw);
    out[count].gid_index = static_cast<uint32_t>(count);
    out[count].port_num = 1;
    out[count++].gid_type = type;
  };
  for (const urma::Eid& address : facts.addresses) {
    if (facts.link == Link::infiniband) add(address, IBV_GID_TYPE_IB);
    if (facts.link == Link::roce) add(address, IBV_GID_TYPE_ROCE_V1);
    if (facts.link == Link::roce) add(address, IBV_GID_TYPE_ROCE_V2);
  }
  return static_cast<ssize_t>(count);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* out) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& from = static_cast<SoftContext&>(*context);
  if (from.events.empty()) return errno = EAGAIN, -1;
  from.signals.take();
  *out = from.events.front();
  from.events.pop_front();
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return Fabric::the().made(new ibv_pd{.context = context, .handle = 0});
}
int ibv_dealloc_pd(ibv_pd* domain) { return Fabric::the().ended(domain); }

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t bytes, int access) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  SoftDevice& device = static_cast<SoftContext*>(domain->context)->adapter();
  const bool peers_store = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (peers_store && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return errno = EINVAL, nullptr;
  if (bytes > device.facts.most_locked - device.locked) return errno = ENOMEM, nullptr;
  device.locked += bytes;
  auto* const memory = new SoftMemory{};
  memory->context = domain->context;
  memory->pd = domain;
  memory->addr = address;
  memory->length = bytes;
  // The keys of the last memory that was deregistered, as adapters with a cache of keys give them.
  uint32_t key = all.next_key;
  if (all.free_keys.empty()) {
    all.next_key += 2;
  } else {
    key = all.free_keys.back();
    all.free_keys.pop_back();
  }
  memory->lkey = key;
  memory->rkey = key + 1;  // another one, so that a driver cannot confuse them
  memory->access = access;
  all.memories.push_back(memory);
  return memory;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t bytes, uint64_t, unsigned access) {
  return ibv_reg_mr(domain, address, bytes, static_cast<int>(access));
}
int ibv_dereg_mr(ibv_mr* memory) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto* const one = static_cast<SoftMemory*>(memory);
  static_cast<SoftContext*>(one->context)->adapter().locked -= one->length;
  Fabric::the().free_keys.push_back(one->lkey);
  forget(Fabric::the().memories, *one);
  delete one;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = Fabric::the().made(new SoftChannel{});
  channel->context = context;
  channel->fd = channel->signals.fd();
  return channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return Fabric::the().ended(static_cast<SoftChannel*>(channel));
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void**) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& from = static_cast<SoftChannel&>(*channel);
  if (from.events.empty()) return errno = EAGAIN, -1;
  from.signals.take();
  *queue = from.events.front();
  from.events.pop_front();
  ++static_cast<SoftQueue*>(*queue)->unacknowledged;
  return 0;
}
void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  const std::lock_guard lock(Fabric::the().mutex);
  static_cast<SoftQueue*>(queue)->unacknowledged -= count;
}

ibv_cq* ibv_create_cq(ibv_context* context, int room, void*, ibv_comp_channel* channel, int) {
  auto* const queue = Fabric::the().made(new SoftQueue{});
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = &Fabric::the().none;
  queue->cqe = room;
  return queue;
}
int ibv_destroy_cq(ibv_cq* queue) {
  Fabric& all = Fabric::the();
  auto* const one = static_cast<SoftQueue*>(queue);
  {
    const std::lock_guard lock(all.mutex);
    const auto uses = [&](const SoftPair* pair) {
      return pair->send_cq == queue || pair->recv_cq == queue;
    };
    if (std::ranges::any_of(all.pairs, uses)) return EBUSY;
    // The real function would wait for ever.
    if (one->unacknowledged != 0) std::abort();
  }
  return all.ended(one);
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  const AdapterFacts& facts = static_cast<SoftContext*>(domain->context)->adapter().facts;
  const ibv_qp_cap& room = wanted->cap;
  if ((wanted->qp_type != IBV_QPT_UD && wanted->qp_type != IBV_QPT_RC) ||
      room.max_inline_data > facts.most_inline ||
      room.max_send_sge > static_cast<uint32_t>(facts.most_pieces)) {
    return errno = EINVAL, nullptr;
  }
  auto* const pair = new SoftPair{};
  pair->context = domain->context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->qp_num = all.next_number++;
  pair->qp_type = wanted->qp_type;
  pair->state = IBV_QPS_RESET;
  pair->room = room;
  pair->all_signalled = wanted->sq_sig_all != 0;
  if (!pair->reliable()) pair->send_cq->cq_context = pair->recv_cq->cq_context = pair;
  all.pairs.push_back(pair);
  return pair;
}
int ibv_destroy_qp(ibv_qp* pair) {
  Fabric& all = Fabric::the();
  const std::lock_guard lock(all.mutex);
  auto* const one = static_cast<SoftPair*>(pair);
  // Nothing is reported of a queue pair any longer, once it is destroyed.
  const auto removed = std::erase_if(
      one->owner().events, [&](const ibv_async_event& event) { return event.element.qp == pair; });
  for (size_t i = 0; i < removed; ++i) one->owner().signals.take();
  for (ibv_cq* queue : {pair->send_cq, pair->recv_cq}) {
    if (queue->cq_context == pair) queue->cq_context = &all.none;
  }
  forget(all.pairs, *one);
  delete one;
  return 0;
}
int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* to, int changed) {
  const std::lock_guard lock(Fabric::the().mutex);
  auto& one = static_cast<SoftPair&>(*pair);
  if (one.owner().adapter().removed) return EIO;
  if ((changed & IBV_QP_STATE) == 0) return EINVAL;
  size_t& failing = Fabric::the().failing_starts;
  if (to->qp_state == IBV_QPS_RTR && failing > 0) {
    --failing;
    one.state = IBV_QPS_ERR;
  }
  const ibv_qp_state wanted = to->qp_state;
  const bool next = wanted == IBV_QPS_RESET || wanted == IBV_QPS_ERR ||
                    (wanted == IBV_QPS_INIT && one.state == IBV_QPS_RESET) ||
                    (wanted == IBV_QPS_RTR && one.state == IBV_QPS_INIT) ||
                    (wanted == IBV_QPS_RTS && one.state == IBV_QPS_RTR);
  if (one.reliable() ? !take_attributes(one, *to, changed) : !next) return EINVAL;
  if ((changed & IBV_QP_QKEY) != 0) one.key = to->qkey;
  if (wanted == IBV_QPS_RESET) {
    one.receives.clear();
    one.sends.clear();
    one.freed = one.posted;
  }
  one.state = wanted;
  if (wanted == IBV_QPS_ERR) one.flush();
  return 0;
}
int ibv_query_qp(ibv_qp* pair, ibv_qp_attr* out, int, ibv_qp_init_attr*) {
  const std::lock_guard lock(Fabric::the().mutex);
  out->qp_state = pair->state;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  auto* const handle = Fabric::the().made(new SoftHandle{});
  handle->context = domain->context;
  handle->attributes = *attributes;
  return handle;
}
int ibv_destroy_ah(ibv_ah* handle) { return Fabric::the().ended(static_cast<SoftHandle*>(handle)); }

}  // extern "C"
