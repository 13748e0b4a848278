// SPDX-License-Identifier: Apache-2.0
// The functions that NCCL calls, for each version of its interface. No exception leaves them: NCCL
// calls them as functions of C.
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "plugins/nccl/connecting.h"
#include "plugins/nccl/listener.h"
#include "plugins/nccl/log.h"

namespace urma::nccl {
namespace {

// NCCL uses its network by this name (NCCL_NET), and prints it.
constexpr const char* net_name = "URMA";
char device_name[] = "urma0";
constexpr int most_comms = 4096;

// NCCL has a context for each communicator, from version 11 on.
struct Context {
  SessionRef session;
};
// Held while the first context is made and the last one is ended, so that connections of a new
// context are not dropped with those of the last one.
std::mutex contexts_mutex;
int contexts = 0;

Code refuse(const char* call, const Error& why) {
  warn("%s: %s", call, why.message.c_str());
  switch (why.status) {
    case Status::peer_unreachable:
    case Status::peer_restarted:
    case Status::version_mismatch:
      return Code::remote_error;
    case Status::invalid_argument:
      return Code::invalid_usage;
    default:
      return Code::system_error;
  }
}

Code refuse_null(const char* call, const char* what) {
  warn("%s: %s. Fix: use a version of NCCL that docs/nccl.md lists", call, what);
  return Code::invalid_argument;
}

// Runs the body of a call of NCCL.
template <class Body>
Code guarded(const char* call, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    warn("%s: there is no memory left. Fix: give the process more", call);
  } catch (const std::exception& why) {
    warn("%s: %s. Fix: report this as a bug of liburma", call, why.what());
  } catch (...) {
    warn("%s: an unknown exception. Fix: report this as a bug of liburma", call);
  }
  return Code::system_error;
}

// Hands an object over to NCCL, or says why there is none.
template <class Object>
Code hand_over(const char* call, Result<std::unique_ptr<Object>> made, void** out) {
  if (!made) return refuse(call, made.error());
  *out = made->release();
  return Code::success;
}

// ---- the process

Code init_context(void** context, uint64_t, CommConfig*, Logger logger, Profiler) {
  return guarded("init", [&] {
    log_to(logger);
    *context = nullptr;
    auto session = SessionRef::acquire();
    if (!session) return refuse("init", session.error());
    *context = new Context{std::move(*session)};
    const std::lock_guard held(contexts_mutex);
    ++contexts;
    return Code::success;
  });
}

Code finalize(void* context) {
  return guarded("finalize", [&] {
    if (context == nullptr) return Code::success;
    const std::unique_ptr<Context> ended(static_cast<Context*>(context));
    const std::lock_guard held(contexts_mutex);
    if (--contexts == 0) drop_all();
    return Code::success;
  });
}

// Versions without `finalize` never say that the device may be closed. So this call only tries to
// open it, and it stays open for as long as there is a listener, a sender or a receiver.
Code init_once(Logger logger) {
  return guarded("init", [&] {
    log_to(logger);
    const auto session = SessionRef::acquire();
    return session ? Code::success : refuse("init", session.error());
  });
}
Code init_once_with_profiler(Logger logger, Profiler) { return init_once(logger); }

Code devices(int* count) {
  *count = 1;
  return Code::success;
}

template <class Properties>
Code properties(int device, Properties* out) {
  return guarded("getProperties", [&] {
    if (device != 0) return refuse_null("getProperties", "there is only device 0");
    auto session = SessionRef::acquire();
    if (!session) return refuse("getProperties", session.error());
    *out = {};
    out->name = device_name;
    out->guid = Session::host_number();
    out->pointers = host_pointers;
    out->registrations_are_global = 1;
    out->speed_mbps = (*session)->speed_mbps();
    out->latency_us = (*session)->latency_us();
    out->most_comms = most_comms;
    out->most_receives = most_receives;
    if constexpr (requires { out->physical; }) {
      out->physical.count = 1;
      out->most_p2p_bytes = max_write_bytes;
      out->most_collective_bytes = max_write_bytes;
    }
    if constexpr (requires { out->most_multi_requests; }) out->most_multi_requests = 1;
    if constexpr (requires { out->rail; }) out->rail = out->plane = -1;
    return Code::success;
  });
}

// ---- connections

Code listen(int device, void* handle, void** listener) {
  return guarded("listen", [&] {
    if (device != 0) return refuse_null("listen", "there is only device 0");
    auto session = SessionRef::acquire();
    if (!session) return refuse("listen", session.error());
    return hand_over("listen", Listener::make(std::move(*session), handle), listener);
  });
}

// Makes a sender with the first call for a handle, and returns it in the next ones.
Result<std::unique_ptr<Sender>> sender_for(void* handle) {
  const uint64_t number = sender_of(handle);
  if (number == 0) {
    auto session = SessionRef::acquire();
    if (!session) return session.error();
    return Sender::make(std::move(*session), handle);
  }
  set_sender(handle, 0);
  auto sender = resume(number);
  if (sender != nullptr) return sender;
  return Error{Status::invalid_argument,
               "the peer's handle is damaged, or a connection was given up. Fix: carry all 128 "
               "bytes of the handle"};
}

Code connect(int device, void* handle, void** out) {
  return guarded("connect", [&] {
    *out = nullptr;
    if (device != 0) return refuse_null("connect", "there is only device 0");
    auto sender = sender_for(handle);
    if (!sender) return refuse("connect", sender.error());
    const auto connected = (*sender)->connect();
    if (!connected) return refuse("connect", connected.error());
    if (*connected) {
      *out = sender->release();
    } else {
      set_sender(handle, keep(std::move(*sender)));
    }
    return Code::success;
  });
}

Code accept(void* listener, void** receiver, void**) {
  return guarded("accept", [&] {
    *receiver = nullptr;
    return hand_over("accept", static_cast<Listener*>(listener)->accept(), receiver);
  });
}

template <class Object>
Code close(void* object) {
  return guarded("close", [&] {
    delete static_cast<Object*>(object);
    return Code::success;
  });
}

// ---- memory

Code register_memory(void*, void* data, size_t bytes, int type, void** memory) {
  return guarded("regMr", [&] {
    *memory = nullptr;
    if (type != host_pointers) {
      return refuse_null("regMr", "only memory of the host can be registered");
    }
    auto session = SessionRef::acquire();
    if (!session) return refuse("regMr", session.error());
    auto added = (*session)->memory.add((*session)->device, data, bytes);
    if (!added) return refuse("regMr", added.error());
    *memory = *added;
    return Code::success;
  });
}

Code deregister_memory(void*, void* memory) {
  return guarded("deregMr", [&] {
    if (memory == nullptr) return Code::success;
    auto session = SessionRef::acquire();
    if (!session) return refuse("deregMr", session.error());
    const auto removed = (*session)->memory.remove(static_cast<Registration*>(memory));
    (*session)->copier.drain();
    return removed ? Code::success : refuse("deregMr", removed.error());
  });
}

// ---- data

Code isend(void* sender, void* data, size_t bytes, int tag, void*, void*, void** request) {
  return guarded("isend", [&] {
    Request* made = nullptr;
    *request = nullptr;
    if (bytes > max_write_bytes) return refuse_null("isend", "a send has at most 1 GiB");
    const Code code = static_cast<Sender*>(sender)->send(data, bytes, tag, &made);
    *request = made;
    return code;
  });
}

// The flag optional_completion in *request is not used: the completion comes with the data.
Code irecv(void* receiver, int count, void** data, size_t* bytes, int* tags, void** memories,
           void**, void** request) {
  return guarded("irecv", [&] {
    Request* made = nullptr;
    *request = nullptr;
    if (count < 1 || count > static_cast<int>(most_receives)) {
      return refuse_null("irecv", "a receive has 1 to 8 buffers");
    }
    const Code code =
        static_cast<Receiver*>(receiver)->receive(count, data, bytes, tags, memories, &made);
    *request = made;
    return code;
  });
}

// Data lies in memory of the host when a receive is done.
Code iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return Code::success;
}

Code test(void* request, int* done, int* bytes) {
  return guarded("test", [&] {
    auto& one = *static_cast<Request*>(request);
    *done = 0;
    if (!one.used) return refuse_null("test", "the request is done already");
    return one.sender != nullptr ? one.sender->test(one, done, bytes)
                                 : one.receiver->test(one, done, bytes);
  });
}

// ---- as the versions pass it

Code listen_in(void*, int device, void* handle, void** listener) {
  return listen(device, handle, listener);
}
Code connect_in(void*, int device, void* handle, void** sender, void**) {
  return connect(device, handle, sender);
}
Code connect_v10(int device, CommConfig*, void* handle, void** sender, void**) {
  return connect(device, handle, sender);
}
Code connect_v9(int device, void* handle, void** sender, void**) {
  return connect(device, handle, sender);
}
Code isend_v9(void* sender, void* data, size_t bytes, int tag, void* memory, void** request) {
  return isend(sender, data, bytes, tag, memory, nullptr, request);
}
Code irecv_v9(void* receiver, int count, void** data, size_t* bytes, int* tags, void** memories,
              void** request) {
  return irecv(receiver, count, data, bytes, tags, memories, nullptr, request);
}
Code isend_v8(void* sender, void* data, int bytes, int tag, void* memory, void** request) {
  if (bytes < 0) return refuse_null("isend", "the size is negative");
  return isend(sender, data, static_cast<size_t>(bytes), tag, memory, nullptr, request);
}
Code irecv_v8(void* receiver, int count, void** data, int* bytes, int* tags, void** memories,
              void** request) {
  size_t sizes[most_receives] = {};
  for (int i = 0; i < count && i < static_cast<int>(most_receives); ++i) {
    if (bytes[i] < 0) return refuse_null("irecv", "the size is negative");
    sizes[i] = static_cast<size_t>(bytes[i]);
  }
  return irecv(receiver, count, data, sizes, tags, memories, nullptr, request);
}

template <class Net, class Properties>
constexpr Net with_context() {
  return {.name = net_name,
          .init = init_context,
          .devices = devices,
          .get_properties = properties<Properties>,
          .listen = listen_in,
          .connect = connect_in,
          .accept = accept,
          .register_memory = register_memory,
          .register_dma_buf = nullptr,
          .deregister_memory = deregister_memory,
          .isend = isend,
          .irecv = irecv,
          .iflush = iflush,
          .test = test,
          .close_send = close<Sender>,
          .close_receive = close<Receiver>,
          .close_listen = close<Listener>,
          .get_device_memory = nullptr,
          .irecv_consumed = nullptr,
          .make_virtual_device = nullptr,
          .finalize = finalize,
          .set_attributes = nullptr};
}

// Versions 8 to 10 differ in these functions. What is not set, is null.
template <class Net, class Properties>
constexpr Net without_context(decltype(Net::init) init, decltype(Net::connect) connect,
                              decltype(Net::isend) isend, decltype(Net::irecv) irecv) {
  Net net{};
  net.name = net_name;
  net.init = init;
  net.devices = devices;
  net.get_properties = properties<Properties>;
  net.listen = listen;
  net.connect = connect;
  net.accept = accept;
  net.register_memory = register_memory;
  net.deregister_memory = deregister_memory;
  net.isend = isend;
  net.irecv = irecv;
  net.iflush = iflush;
  net.test = test;
  net.close_send = close<Sender>;
  net.close_receive = close<Receiver>;
  net.close_listen = close<Listener>;
  return net;
}

}  // namespace
}  // namespace urma::nccl

// NCCL looks up the newest of these names that it knows.
extern "C" {
using namespace urma::nccl;
URMA_API constinit NetV12 ncclNetPlugin_v12 = with_context<NetV12, PropertiesV12>();
URMA_API constinit NetV11 ncclNetPlugin_v11 = with_context<NetV11, PropertiesV11>();
URMA_API constinit NetV10 ncclNetPlugin_v10 =
    without_context<NetV10, PropertiesV10>(init_once_with_profiler, connect_v10, isend, irecv);
URMA_API constinit NetV9 ncclNetPlugin_v9 =
    without_context<NetV9, PropertiesV10>(init_once, connect_v9, isend_v9, irecv_v9);
URMA_API constinit NetV8 ncclNetPlugin_v8 =
    without_context<NetV8, PropertiesV8>(init_once, connect_v9, isend_v8, irecv_v8);
}
