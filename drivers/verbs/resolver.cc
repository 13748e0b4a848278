// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/resolver.h"

#include <fcntl.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/above_standard.h"
#include "base/clock.h"
#include "base/failed.h"
#include "base/signals_blocked.h"
#include "base/socket_address.h"

namespace urma::drivers::verbs {
namespace {

constexpr size_t most_questions = 256;  // that wait for their turn
constexpr size_t most_queries = 64;     // that the communication manager works on
// The communication manager repeats a question that was lost only after 4 s.
constexpr Duration query_patience = std::chrono::milliseconds(250);
constexpr int step_patience_ms = 1000;  // of the communication manager with one step
// A handle that the port no longer uses is destroyed after this time: datagrams that were posted
// with it have left their queue long before.
constexpr Duration discarded_after = std::chrono::seconds(2);
constexpr int between_looks_ms = 100;  // at times that may have expired, while there are any
// rxe reports no event when a queue pair fails, and no completion of its receives.
constexpr Duration between_looks_at_queue_pair = std::chrono::seconds(1);

void set_non_blocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

// Returns the flow label for datagrams to `to`. RoCE v2 derives the UDP source port from it, by
// which networks spread flows.
uint32_t flow_label(const Endpoint& from, const Endpoint& to) {
  uint64_t hash = from.port + (uint64_t{to.port} << 16);
  for (const Endpoint* end : {&from, &to}) {
    uint64_t words[2];
    std::memcpy(words, end->address.bytes.data(), sizeof words);
    hash = mix_bits(hash ^ words[0]) ^ words[1];
  }
  return static_cast<uint32_t>(mix_bits(hash) & 0xfffff);
}

}  // namespace

Result<std::unique_ptr<Resolver>> Resolver::start(const Adapter& adapter,
                                                  const Settings& settings) {
  EventChannel channel(rdma_create_event_channel());
  if (!channel) {
    return failed(Status::unsupported,
                  "verbs: the communication manager cannot be used: ", std::strerror(errno))
        .fix("as root, modprobe rdma_ucm; and give this user access to /dev/infiniband/rdma_cm");
  }
  const int wake = above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int news = above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::unique_ptr<Resolver> resolver(new Resolver(adapter, std::move(channel), wake, news));
  if (wake < 0 || news < 0) {
    return failed(Status::no_resources, "verbs: eventfd: ", std::strerror(errno)).usual_fix();
  }
  set_non_blocking(resolver->channel_->fd);
  set_non_blocking(adapter.context()->async_fd);
  if (auto done = resolver->listen(settings); !done) return done.error();
  const SignalsBlocked blocked;
  resolver->thread_ = std::thread([self = resolver.get()] {
    pthread_setname_np(pthread_self(), "urma-verbs");
    self->run();
  });
  return resolver;
}

Resolver::~Resolver() {
  stop_.store(true);
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  queries_.clear();
  listener_.reset();
  for (const Discarded& one : discarded_) ibv_destroy_ah(one.handle);
  for (const Answer& one : answers_) {
    if (one.destination.handle != nullptr) ibv_destroy_ah(one.destination.handle);
  }
  for (const int one : {wake_, news_}) {
    if (one >= 0) close(one);
  }
}

void Resolver::tell() const { eventfd_write(news_, 1); }

void Resolver::clear_news() const {
  eventfd_t ignored = 0;
  eventfd_read(news_, &ignored);
}

Resolver::Id Resolver::make_id() const {
  rdma_cm_id* id = nullptr;
  rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_UDP);
  return Id(id);
}

// Writes the address as the communication manager takes it: on InfiniBand a GID, elsewhere an IP
// address.
socklen_t Resolver::address_of(const Endpoint& at, sockaddr_storage& out) const {
  out = {};
  const Gid& own = adapter_.facts().gid;
  if (own.kind == Gid::Kind::infiniband) {
    auto& address = reinterpret_cast<sockaddr_ib&>(out);
    address.sib_family = AF_IB;
    address.sib_pkey = htobe16(0xffff);
    std::memcpy(&address.sib_addr, at.address.bytes.data(), sizeof address.sib_addr);
    address.sib_sid = htobe64(RDMA_IB_IP_PS_UDP | at.port);
    address.sib_sid_mask = htobe64(at.port != 0 ? UINT64_MAX : RDMA_IB_IP_PS_MASK);
    return sizeof address;
  }
  SocketAddress address;
  const socklen_t bytes = to_sockaddr(at, address);
  // An address of the link is valid on the adapter's interface.
  if (!at.is_ipv4() && IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr)) {
    address.v6.sin6_scope_id = own.interface;
  }
  std::memcpy(&out, &address, bytes);
  return bytes;
}

// Returns 0 or an errno.
int Resolver::bind(rdma_cm_id& id, uint16_t port) const {
  sockaddr_storage own;
  address_of({adapter_.facts().gid.address, port}, own);
  return rdma_bind_addr(&id, reinterpret_cast<sockaddr*>(&own)) == 0 ? 0 : errno;
}

Result<void> Resolver::listen(const Settings& settings) {
  listener_ = make_id();
  const bool any = settings.service == 0;
  int why = listener_ ? bind(*listener_, any ? ub_port : settings.service) : errno;
  if (any && why == EADDRINUSE) why = bind(*listener_, 0);
  if (why == 0 && rdma_listen(listener_.get(), 128) != 0) why = errno;
  const std::string self = to_string(adapter_.facts().gid.address);
  if (why == EADDRINUSE) {
    return failed(Status::address_in_use, "verbs: another device has the service ",
                  settings.service, " at ", self)
        .fix("choose another number, or leave the option service out");
  }
  if (why != 0) {
    return failed(Status::unsupported, "verbs: ", adapter_.place(), " cannot be reached at ", self,
                  ": ", std::strerror(why))
        .fix("choose the GID of an address that its network interface has (gid=...; ip addr)");
  }
  service_ = ntohs(rdma_get_src_port(listener_.get()));
  return {};
}

bool Resolver::ask(const Endpoint& to) {
  {
    const std::lock_guard lock(mutex_);
    if (questions_.size() == most_questions) return false;
    questions_.push_back(to);
  }
  eventfd_write(wake_, 1);
  return true;
}

size_t Resolver::take(std::span<Answer> out) {
  if (!answered_.load(std::memory_order_acquire)) return 0;
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(out.size(), answers_.size());
  std::copy_n(answers_.begin(), count, out.begin());
  answers_.erase(answers_.begin(), answers_.begin() + static_cast<ptrdiff_t>(count));
  answered_.store(!answers_.empty(), std::memory_order_release);
  return count;
}

void Resolver::discard(ibv_ah* handle) {
  const std::lock_guard lock(mutex_);
  discarded_.push_back({handle, read_clock() + discarded_after});
}

// ---- the thread

// Returns for how many milliseconds the thread may sleep.
int Resolver::patience() {
  const std::lock_guard lock(mutex_);
  if (!queries_.empty() || !discarded_.empty()) return between_looks_ms;
  return static_cast<int>(between_looks_at_queue_pair / std::chrono::milliseconds(1));
}

void Resolver::run() {
  std::array<pollfd, 3> sources{
      {{channel_->fd, POLLIN, 0}, {adapter_.context()->async_fd, POLLIN, 0}, {wake_, POLLIN, 0}}};
  while (!stop_.load()) {
    poll(sources.data(), sources.size(), patience());
    // The descriptor of an adapter that was removed stays readable.
    if ((sources[1].revents & (POLLERR | POLLHUP)) != 0) {
      sources[1].fd = -1;
      note_removal();
    }
    eventfd_t ignored = 0;
    eventfd_read(wake_, &ignored);
    handle_events();
    handle_adapter_events();
    begin_queries();
    const Time now = read_clock();
    look_at_queue_pair(now);
    end_old_queries(now);
    destroy_discarded(now);
  }
}

void Resolver::begin_queries() {
  while (queries_.size() < most_queries) {
    Endpoint next;
    {
      const std::lock_guard lock(mutex_);
      if (questions_.empty()) return;
      next = questions_.front();
      questions_.erase(questions_.begin());
    }
    const bool asked =
        std::ranges::any_of(queries_, [&](auto& query) { return query->to == next; });
    if (!asked) begin(next);
  }
}

void Resolver::begin(const Endpoint& to) {
  auto query = std::make_unique<Query>();
  query->to = to;
  query->until = read_clock() + query_patience;
  if (to == Endpoint{adapter_.facts().gid.address, service_}) {
    return finish(*query, {.handle = make_handle(to, {}),
                           .number = serves_.load(std::memory_order_acquire)->qp_num,
                           .key = RDMA_UDP_QKEY});
  }
  query->id = make_id();
  sockaddr_storage own;
  sockaddr_storage peer;
  address_of({adapter_.facts().gid.address, 0}, own);
  address_of(to, peer);
  if (!query->id || rdma_resolve_addr(query->id.get(), reinterpret_cast<sockaddr*>(&own),
                                      reinterpret_cast<sockaddr*>(&peer), step_patience_ms) != 0) {
    return finish(*query, {});
  }
  queries_.push_back(std::move(query));
}

void Resolver::handle_events() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) == 0) {
    // An id must not be destroyed while its event is unacknowledged.
    const rdma_cm_event copy = *event;
    std::unique_ptr<Query> done;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      answer_request(*event->id);
      rdma_cm_id* const request = event->id;
      rdma_ack_cm_event(event);
      rdma_destroy_id(request);
      continue;
    }
    if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) note_removal();
    const auto query =
        std::ranges::find_if(queries_, [&](auto& one) { return one->id.get() == copy.id; });
    if (query != queries_.end() && !advance(**query, copy)) {
      done = std::move(*query);
      queries_.erase(query);
    }
    rdma_ack_cm_event(event);
  }
}

void Resolver::answer_request(rdma_cm_id& request) const {
  rdma_conn_param answer{};
  if (const ibv_qp* const pair = serves_.load(std::memory_order_acquire); pair != nullptr) {
    answer.qp_num = pair->qp_num;
    rdma_accept(&request, &answer);
  } else {
    rdma_reject(&request, nullptr, 0);
  }
}

// Takes the next step of a query. Returns false if that was the last one.
bool Resolver::advance(Query& query, const rdma_cm_event& event) {
  rdma_conn_param nothing{};
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(query.id.get(), step_patience_ms) == 0) return true;
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (rdma_connect(query.id.get(), &nothing) == 0) return true;
      break;
    case RDMA_CM_EVENT_ESTABLISHED: {
      const rdma_ud_param& found = event.param.ud;
      finish(query, {.handle = make_handle(query.to, found.ah_attr),
                     .number = found.qp_num,
                     .key = found.qkey});
      return false;
    }
    default:
      break;
  }
  finish(query, {});
  return false;
}

void Resolver::finish(const Query& query, const Destination& found) {
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back({query.to, found});
    answered_.store(true, std::memory_order_release);
  }
  tell();
}

void Resolver::end_old_queries(Time now) {
  std::erase_if(queries_, [&](auto& query) {
    if (now < query->until) return false;
    finish(*query, {});
    return true;
  });
}

ibv_ah* Resolver::make_handle(const Endpoint& to, ibv_ah_attr attributes) const {
  attributes.grh = {};
  attributes.grh.flow_label = flow_label({adapter_.facts().gid.address, service_}, to);
  return adapter_.make_handle(to.address, attributes).release();
}

void Resolver::handle_adapter_events() {
  ibv_async_event event;
  while (ibv_get_async_event(adapter_.context(), &event) == 0) {
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) note_removal();
    const bool of_pair = event.event_type == IBV_EVENT_QP_FATAL ||
                         event.event_type == IBV_EVENT_QP_REQ_ERR ||
                         event.event_type == IBV_EVENT_QP_ACCESS_ERR;
    // Failures of reliable pairs are seen in their completions.
    const bool own = of_pair && event.element.qp == serves_.load(std::memory_order_acquire);
    if (own || event.event_type == IBV_EVENT_CQ_ERR) {
      failed_.store(true, std::memory_order_relaxed);
      tell();
    }
    ibv_ack_async_event(&event);
  }
}

void Resolver::note_removal() {
  gone_.store(true, std::memory_order_relaxed);
  tell();
}

void Resolver::look_at_queue_pair(Time now) {
  ibv_qp* const pair = serves_.load(std::memory_order_acquire);
  if (pair == nullptr || now - looked_at_ < between_looks_at_queue_pair) return;
  looked_at_ = now;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr made{};
  if (ibv_query_qp(pair, &attributes, IBV_QP_STATE, &made) != 0) return;
  if (attributes.qp_state != IBV_QPS_ERR && attributes.qp_state != IBV_QPS_SQE) return;
  failed_.store(true, std::memory_order_relaxed);
  tell();
}

void Resolver::destroy_discarded(Time now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(discarded_, [&](const Discarded& one) {
    if (now < one.at) return false;
    ibv_destroy_ah(one.handle);
    return true;
  });
}

}  // namespace urma::drivers::verbs
