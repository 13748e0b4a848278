// SPDX-License-Identifier: Apache-2.0
#include "drivers/udp/uring_library.h"

#include <dlfcn.h>

#include "base/failed.h"

namespace urma::drivers::udp {
namespace {

constexpr char uring_file[] = "liburing.so.2";

// A function that the first suitable version, 2.3, has added.
constexpr char newest_function[] = "io_uring_get_events";

Error not_loaded() {
  const char* const why = dlerror();
  return failed(Status::unsupported, "udp: io=uring: ", uring_file, " cannot be loaded (",
                std::string(why != nullptr ? why : "no reason given"), ")")
      .fix("apt-get install liburing2, or io=mmsg");
}

Error too_old() {
  return {
      Status::unsupported,
      "udp: io=uring: liburing.so.2 is older than 2.3. Fix: install a newer liburing, or io=mmsg"};
}

Result<UringLibrary> load() {
  void* const handle = dlopen(uring_file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return not_loaded();
  UringLibrary library;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  const bool found = dlsym(handle, newest_function) != nullptr &&
                     find("io_uring_queue_init_params", library.queue_init_params) &&
                     find("io_uring_queue_exit", library.queue_exit) &&
                     find("io_uring_submit_and_wait", library.submit_and_wait) &&
                     find("io_uring_register_buf_ring", library.register_buf_ring);
  if (!found) return too_old();
  return library;
}

}  // namespace

Result<const UringLibrary*> load_uring_library() {
  static const Result<UringLibrary> library = load();
  if (!library) return library.error();
  return &*library;
}

}  // namespace urma::drivers::udp
