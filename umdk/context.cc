// SPDX-License-Identifier: Apache-2.0
#include "umdk/context.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "umdk/log.h"
#include "umdk/moved_memory.h"
#include "urma/core/descriptor.h"

namespace urma::umdk {
namespace {

// Keeps a device open until the process ends, because memory of the program has pages of its
// window.
void lend(urma::Device&& device, std::vector<Segment>&& pages) {
  struct Lender {
    urma::Device device;
    std::vector<Segment> pages;
  };
  static std::mutex mutex;
  static auto* const lenders = new std::deque<Lender>;
  const std::lock_guard held(mutex);
  lenders->push_back({std::move(device), std::move(pages)});
}

}  // namespace

void Context::FreeTable::operator()(std::atomic<const Numbered*>* table) const {
  std::free(static_cast<void*>(table));
}

Context::Context(Device& from, uint32_t index, urma::Device opened)
    : urma_context_t{},
      device(std::move(opened)),
      by_id_(static_cast<std::atomic<const Numbered*>*>(
          std::calloc(id_limit, sizeof(std::atomic<const Numbered*>)))),
      own_numbers_(index_of(place_of(device.endpoint()))),
      forks_before_(forks.load()) {
  static const bool counts = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); }) == 0;
  if (!counts) throw std::bad_alloc();
  const Place place = place_of(device.endpoint());
  dev = &from;
  ops = &operations;
  dev_fd = -1;
  pthread_mutex_init(&mutex, nullptr);
  eid = place.eid;
  eid_index = index;
  uasid = place.uasid;
  ref.atomic_cnt = 1;
  aggr_mode = URMA_AGGR_MODE_STANDALONE;
  raised_ = OwnDescriptor::event();
  const auto events = device.events_fd();
  if (raised_ && events) both_ = OwnDescriptor::either(*events, raised_.number());
  async_fd = both_.number();
  if (!both_ || by_id_ == nullptr) throw std::bad_alloc();
}

Context::~Context() {
  echo.reset();  // it uses the device, which may be lent
  pthread_mutex_destroy(&mutex);
  end_kept();
}

void Context::keep(Segment&& pages) {
  const std::lock_guard held(kept_mutex_);
  kept_.push_back(std::move(pages));
}

// If memory of the program still has pages of the window, the device stays open: otherwise others
// would be given these pages.
void Context::end_kept() {
  std::erase_if(kept_, [](const Segment& pages) {
    return MovedMemory::get().move_out(pages.bytes().data());
  });
  if (!kept_.empty()) lend(std::move(device), std::move(kept_));
}

Result<PeerId> Context::peer_at(const Place& place) {
  if (place.uasid == 0) {
    return Error{Status::invalid_argument,
                 "the uasid of the ubva is 0, which names no process. Fix: pass on the whole ubva "
                 "of the owner"};
  }
  if (std::ranges::all_of(place.eid.raw, [](uint8_t byte) { return byte == 0; })) {
    return Error{Status::invalid_argument,
                 "the EID is 0, which names no process: the target or segment is deleted, or was "
                 "never filled in. Fix: import one"};
  }
  if ((place.uasid & named_place) != 0) return named_at(place);
  if (place.uasid > UINT16_MAX && !in_window(to_address(place.eid))) {
    return Error{Status::invalid_argument,
                 "the uasid " + std::to_string(place.uasid) +
                     " is no UDP port. Fix: pass on the whole jetty_id or ubva of the owner"};
  }
  Descriptor there;
  there.at = endpoint_of(place);
  // The library's EID of a device is its address only at the usual port: it learns others from the
  // peer.
  if (in_window(there.at.address)) there.eid = there.at.address;
  // A peer is found by a Jetty or a segment; this Jetty is one that each device has.
  there.jetty = {.id = setup_jetty, .token = {}};
  auto imported = device.import(to_string(there));
  if (!imported) return imported.error();
  return imported->jetty.peer;
}

[[gnu::noinline, gnu::cold]] Result<PeerId> Context::peer_again_at(const Place& place) noexcept {
  try {
    return peer_at(place);
  } catch (const std::bad_alloc&) {
    return Error{Status::no_resources, {}};
  }
}

void Context::let_go_of(JettyId id) {
  if (!draws_) own_numbers_.give_back(id);
  if (needs_name(id)) (void)device.unpublish(JettyName(id));
}

bool Context::needs_name(JettyId id) const {
  return number(id) < first_automatic && in_window(to_address(eid));
}

void Context::tell_unnamed(JettyId id, const Error& why) {
  log(URMA_VLOG_LEVEL_WARNING, "urma_create_jetty",
      "peers find the number %u only with its uasid: %s", static_cast<unsigned>(number(id)),
      why.message.c_str());
}

Result<void> Context::is_own_window(const urma_eid_t& at) const {
  if (!in_window(to_address(at)) || std::memcmp(eid.raw, at.raw, sizeof at.raw) == 0) return {};
  return Error{Status::invalid_argument,
               "the EID is that of another window. Fix: open a device of that window"};
}

Result<PeerId> Context::named_at(const Place& place) {
  if (auto own = is_own_window(place.eid); !own) return own.error();
  const uint32_t number = place.uasid & ~named_place;
  const auto found = device.import(JettyName(JettyId(number)).in_window(), Duration{});
  if (found) return found->jetty.peer;
  if (found.status() != Status::not_found) return found.error();
  return Error{Status::invalid_argument,
               "the uasid is 0, and no process of this user has published the number " +
                   std::to_string(number) +
                   " in this window. Fix: pass on the whole jetty_id of the owner"};
}

Result<PeerId> Context::pinged_at(const urma_eid_t& at) {
  if (auto own = is_own_window(at); !own) return own.error();
  const Eid address = to_address(at);
  const bool window = in_window(address);
  std::string host = to_string(address);
  if (window) {
    host = "localhost";
  } else if (host.find(':') != host.npos) {
    host = "[" + host + "]";
  }
  constexpr Duration limit = std::chrono::milliseconds(500);
  auto found = device.import("urma://" + host + "/" + ping_name, limit);
  if (found) return found->jetty.peer;
  const bool nobody =
      found.status() == Status::not_found || found.status() == Status::peer_unreachable;
  if (!nobody) return found.error();
  return Error{found.status(),
               "no process answers pings at the EID " + to_string(address) +
                   ". Fix: run urma_ping --serve there, or a program with URMA_PING=1"};
}

// ---- events

void Context::raise(const urma_async_event_t& event) noexcept {
  const std::lock_guard held(events_mutex_);
  keep_or_log("an asynchronous event", [&] {
    events_.push_back(event);
    raised_.ring();
  });
}

bool Context::take(urma_async_event_t& event) {
  const std::lock_guard held(events_mutex_);
  if (!events_.empty()) {
    event = events_.front();
    events_.pop_front();
    if (events_.empty()) raised_.quiet();
    return true;
  }
  return take_from_device(event);
}

bool Context::take_from_device(urma_async_event_t& event) {
  std::array<Event, 1> one;
  while (device.events(one) == 1 && one[0].kind != EventKind::closed) {
    if (translate(one[0], event)) return true;
  }
  return false;
}

// The device's events name numbers, so they are translated while it has this one.
void Context::forget(const Numbered& what) {
  const std::lock_guard held(events_mutex_);
  urma_async_event_t event{};
  while (take_from_device(event)) events_.push_back(event);
  std::erase_if(events_, [&](const urma_async_event_t& one) {
    const bool of_jfr = one.event_type == URMA_EVENT_JFR_LIMIT;
    return what.object == (of_jfr ? reinterpret_cast<uintptr_t>(one.element.jfr)
                                  : reinterpret_cast<uintptr_t>(one.element.jetty));
  });
  if (events_.empty()) {
    raised_.quiet();
  } else {
    raised_.ring();
  }
}

// The C API has no word for most events.
bool Context::translate(const Event& event, urma_async_event_t& out) const {
  if (event.kind != EventKind::jetty_error) return false;
  const Numbered* const what = at(event.jetty);
  if (what == nullptr || !what->jetty) return false;
  out = {};
  out.urma_ctx = this;
  out.element.jetty = reinterpret_cast<urma_jetty_t*>(what->object);
  out.event_type = URMA_EVENT_JETTY_ERR;
  return true;
}

}  // namespace urma::umdk
