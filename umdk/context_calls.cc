// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/entropy.h"
#include "umdk/calls.h"
#include "umdk/context.h"

using namespace urma::umdk;

namespace {

std::atomic<bool> initialised{false};

// Opens a device. At any port (udp:ADDRESS:0), it takes a free one that automatic numbers tell
// (place.h). The search begins anywhere, so that a process that starts again mostly has another
// port than before. The first ports stay free: 4792 is that of devices that are given no port, 4793
// that of CTP in captures, and 4794 that of switches.
urma::Result<urma::Device> open_told(const std::string& text, const urma::DeviceOptions& options) {
  constexpr std::string_view any_port = ":0";
  constexpr uint32_t kept_free = 8;
  constexpr uint32_t first = urma::ub_port + kept_free;
  constexpr uint32_t count = index_limit - kept_free;
  const size_t end = std::min(text.find('?'), text.size());
  const std::string_view at = std::string_view(text).substr(0, end);
  if (!at.starts_with("udp:") || !at.ends_with(any_port)) return urma::open(text, options);
  const std::string address = text.substr(0, end - any_port.size()) + ":";
  const uint32_t begin = urma::SecureEntropy().below(count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string port = std::to_string(first + (begin + i) % count);
    auto opened = urma::open(address + port + text.substr(end), options);
    if (opened || opened.status() != urma::Status::address_in_use) return opened;
  }
  return urma::open(text, options);
}

Device* find_device(urma_device_t* given) { return find<Device>(given); }

// Returns memory that a call of the C API frees by `free`. Throws std::bad_alloc.
template <class Item>
Item* allocate(size_t count) {
  void* const memory = std::calloc(count, sizeof(Item));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<Item*>(memory);
}

}  // namespace

extern "C" {

void urma_u32_to_eid(uint32_t ipv4, urma_eid_t* eid) {
  if (eid == nullptr) return;
  *eid = {};
  eid->in4.prefix = htonl(URMA_IPV4_MAP_IPV6_PREFIX);
  eid->in4.addr = htonl(ipv4);
}

int urma_str_to_eid(const char* buf, urma_eid_t* eid) {
  if (buf == nullptr || eid == nullptr || *buf == 0) return -EINVAL;
  in_addr in4{};
  if (inet_pton(AF_INET6, buf, eid->raw) == 1) return 0;
  if (inet_pton(AF_INET, buf, &in4) == 1) {
    urma_u32_to_eid(ntohl(in4.s_addr), eid);
    return 0;
  }
  const bool hexadecimal = buf[0] == '0' && (buf[1] == 'x' || buf[1] == 'X');
  const char* const digits = buf + (hexadecimal ? 2 : 0);
  const char* const end = digits + std::strlen(digits);
  uint32_t value = 0;
  const auto [rest, error] = std::from_chars(digits, end, value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || rest != end) return -EINVAL;
  urma_u32_to_eid(value, eid);
  return 0;
}

urma_status_t urma_init(urma_init_attr_t*) {
  return run(__func__, [] {
    if (initialised.exchange(true)) {
      return refuse(URMA_EEXIST, "urma_init",
                    "it was called before. Fix: call it once, or urma_uninit before");
    }
    DeviceList::get().refresh();
    return URMA_SUCCESS;
  });
}

urma_status_t urma_uninit(void) {
  initialised = false;
  return URMA_SUCCESS;
}

urma_device_t** urma_get_device_list(int* num_devices) {
  return make("urma_get_device_list", [&]() -> urma_device_t** {
    if (num_devices == nullptr) return null(refuse_null("urma_get_device_list", "num_devices"));
    *num_devices = 0;
    DeviceList::get().refresh();
    const std::vector<Device*> all = DeviceList::get().all();
    if (all.empty()) {
      return null(refuse(ENODEV, "urma_get_device_list",
                         "URMA_DEVICES names no device. Fix: name one, or unset it"));
    }
    auto** const list = allocate<urma_device_t*>(all.size() + 1);
    for (size_t i = 0; i < all.size(); ++i) list[i] = all[i];
    *num_devices = static_cast<int>(all.size());
    return list;
  });
}

void urma_free_device_list(urma_device_t** device_list) {
  std::free(static_cast<void*>(device_list));
}

urma_eid_info_t* urma_get_eid_list(urma_device_t* dev, uint32_t* cnt) {
  return make("urma_get_eid_list", [&]() -> urma_eid_info_t* {
    Device* const device = find_device(dev);
    if (device == nullptr || cnt == nullptr) return null(refuse_null("urma_get_eid_list", "dev"));
    *cnt = 0;
    const auto eids = DeviceList::get().eids(*device);
    if (!eids) {
      refuse("urma_get_eid_list", eids.error());
      return null(EIO);
    }
    auto* const list = allocate<urma_eid_info_t>(eids->size());
    for (size_t i = 0; i < eids->size(); ++i) list[i] = {(*eids)[i], static_cast<uint32_t>(i)};
    *cnt = static_cast<uint32_t>(eids->size());
    return list;
  });
}

void urma_free_eid_list(urma_eid_info_t* eid_list) { std::free(eid_list); }

urma_device_t* urma_get_device_by_name(char* dev_name) {
  return make("urma_get_device_by_name", [&]() -> urma_device_t* {
    if (dev_name == nullptr || *dev_name == 0) {
      return null(refuse_null("urma_get_device_by_name", "dev_name"));
    }
    DeviceList::get().refresh();
    Device* const device = DeviceList::get().named(dev_name);
    if (device != nullptr) return device;
    return null(refuse(ENODEV, "urma_get_device_by_name",
                       "there is no device \"%s\". Fix: use one of urma_get_device_list, or a "
                       "device string such as udp:127.0.0.1:0; or name it in URMA_DEVICES",
                       dev_name));
  });
}

urma_device_t* urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type) {
  return make("urma_get_device_by_eid", [&]() -> urma_device_t* {
    DeviceList::get().refresh();
    for (Device* const device : DeviceList::get().all()) {
      if (device->type != type) continue;
      const auto eids = DeviceList::get().eids(*device);
      if (!eids) continue;
      for (const urma_eid_t& one : *eids) {
        if (std::memcmp(&one, &eid, sizeof eid) == 0) return device;
      }
    }
    return null(refuse(ENODEV, "urma_get_device_by_eid",
                       "no device has the EID " EID_FMT
                       ". Fix: use one of urma_get_eid_list, or name a device in URMA_DEVICES",
                       EID_ARGS(eid)));
  });
}

urma_status_t urma_query_device(urma_device_t* dev, urma_device_attr_t* dev_attr) {
  return run(__func__, [&] {
    const Device* const device = find_device(dev);
    if (device == nullptr || dev_attr == nullptr) return refuse_null("urma_query_device", "dev");
    *dev_attr = attributes_of(*device);
    return URMA_SUCCESS;
  });
}

urma_context_t* urma_create_context(urma_device_t* dev, uint32_t eid_index) {
  return make("urma_create_context", [&]() -> urma_context_t* {
    Device* const device = find_device(dev);
    if (device == nullptr) return null(refuse_null("urma_create_context", "dev"));
    const std::vector<std::string> strings = DeviceList::get().strings(*device);
    if (eid_index >= strings.size()) {
      return null(refuse(URMA_EINVAL, "urma_create_context",
                         "the device has %zu EIDs, and eid_index is %u. Fix: use one of "
                         "urma_get_eid_list",
                         strings.size(), eid_index));
    }
    // Other kinds of events would make `async_fd` readable, and no call would return them.
    auto opened = open_told(strings[eid_index],
                            {.limits = {.jetties = max_jetties, .peers = 4096, .segments = 1 << 16},
                             .events = {urma::EventKind::jetty_error}});
    if (!opened) {
      refuse("urma_create_context", opened.error());
      return null(EIO);
    }
    Pool<Context>::Owner context(Pool<Context>::make(*device, eid_index, std::move(*opened)));
    DeviceList::get().note(*device, eid_index, strings[eid_index], context->eid);
    if (!Echo::wanted()) return context.release();
    auto echo = Echo::start(context->device);
    if (!echo) {
      refuse("urma_create_context", echo.error());
      return null(EIO);
    }
    context->echo = std::move(*echo);
    return context.release();
  });
}

urma_status_t urma_delete_context(urma_context_t* ctx) {
  return end_object<Context>(__func__, "ctx", ctx, [](Context& context) {
    if (context.is_held()) {
      return refuse(URMA_EAGAIN, "urma_delete_context",
                    "it has %lu objects. Fix: delete these first",
                    context.ref.atomic_cnt.load() - 1);
    }
    Pool<Context>::destroy(&context);
    return URMA_SUCCESS;
  });
}

urma_status_t urma_set_context_opt(urma_context_t* ctx, urma_opt_name_t, const void*, size_t) {
  return with<Context>(__func__, "ctx", ctx, [](Context&) {
    return refuse(URMA_EINVAL, "urma_set_context_opt",
                  "only bonding devices have options, and this is none. Fix: open paths():... for "
                  "several networks");
  });
}

urma_status_t urma_get_uasid(uint32_t* uasid) {
  if (uasid == nullptr) return refuse_null(__func__, "uasid");
  *uasid = 0;  // each context has another one, and peers find a Jetty without it
  return URMA_SUCCESS;
}

// ---- events

urma_status_t urma_get_async_event(urma_context_t* ctx, urma_async_event_t* event) {
  if (event == nullptr) return refuse_null(__func__, "event");
  return with<Context>(__func__, "ctx", ctx, [&](Context& context) {
    const bool blocks = (fcntl(context.async_fd, F_GETFL) & O_NONBLOCK) == 0;
    pollfd readable{context.async_fd, POLLIN, 0};
    // A program that calls this once the descriptor is readable does not expect it to wait. But the
    // event may be of an object that the C API does not name, or another call may have taken it.
    const bool promised = poll(&readable, 1, 0) > 0;
    while (!context.take(*event)) {
      if (promised || !blocks) return URMA_EAGAIN;
      if (poll(&readable, 1, -1) < 0) return refuse_interrupted("urma_get_async_event");
    }
    event->urma_ctx = &context;
    return URMA_SUCCESS;
  });
}

void urma_ack_async_event(urma_async_event_t*) {}

}  // extern "C"
