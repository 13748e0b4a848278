// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/net.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "tests/sanitized.h"
#include "tests/umdk/check.h"

int failures = 0;

namespace urma::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using namespace nccl;

namespace {

std::mutex log_mutex;
std::vector<std::string> log_lines;

void log(int level, unsigned long, const char*, int, const char* format, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (std::getenv("NCCL_DEBUG") != nullptr) std::fprintf(stderr, "[%d] %s\n", level, line);
  if (level != log_warn) return;
  const std::lock_guard held(log_mutex);
  log_lines.emplace_back(line);
}

void* load(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  REQUIRE(library != nullptr);
  return library;
}

void* look_up(void* library, int version) {
  void* const symbol = dlsym(library, ("ncclNetPlugin_v" + std::to_string(version)).c_str());
  REQUIRE(symbol != nullptr);
  return symbol;
}

size_t entries(const char* path) {
  DIR* const directory = opendir(path);
  size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

template <class Properties>
NetProperties common(const Properties& from) {
  return {.name = from.name,
          .is_virtual = from.pci_path == nullptr,
          .pointers = from.pointers,
          .global = from.registrations_are_global != 0,
          .speed_mbps = from.speed_mbps,
          .most_comms = from.most_comms,
          .most_receives = from.most_receives};
}

template <class NetType>
constexpr bool has_context = requires(NetType net) {
  net.finalize;
};

}  // namespace

Net::Net(const std::string& file, int version)
    : library_(load(file)), version_(version), symbol_(look_up(library_, version)) {}

Net::~Net() { dlclose(library_); }

template <class Call>
auto Net::with(Call&& call) const {
  switch (version_) {
    case 12:
      return call(*static_cast<NetV12*>(symbol_), PropertiesV12{});
    case 11:
      return call(*static_cast<NetV11*>(symbol_), PropertiesV11{});
    case 10:
      return call(*static_cast<NetV10*>(symbol_), PropertiesV10{});
    case 9:
      return call(*static_cast<NetV9*>(symbol_), PropertiesV10{});
    default:
      return call(*static_cast<NetV8*>(symbol_), PropertiesV8{});
  }
}

bool Net::exports(const char* symbol) const { return dlsym(library_, symbol) != nullptr; }

std::string Net::name() const {
  return with([](auto& net, auto) { return std::string(net.name); });
}

Code Net::init(void** context) const {
  static std::atomic<uint64_t> comm{0};
  *context = nullptr;
  CommConfig config{-1};
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (has_context<NetType>) return net.init(context, ++comm, &config, log, nullptr);
    if constexpr (std::is_same_v<NetType, NetV10>) return net.init(log, nullptr);
    if constexpr (requires { net.init(log); }) return net.init(log);
  });
}

Code Net::finalize(void* context) const {
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (has_context<NetType>) return net.finalize(context);
    return Code::success;
  });
}

int Net::devices() const {
  int count = 0;
  REQUIRE(with([&](auto& net, auto) { return net.devices(&count); }) == Code::success);
  return count;
}

NetProperties Net::properties() const {
  return with([](auto& net, auto properties) {
    REQUIRE(net.get_properties(0, &properties) == Code::success);
    return common(properties);
  });
}

Code Net::listen(void* context, NetHandle& handle, void** listener) const {
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (has_context<NetType>)
      return net.listen(context, 0, handle.bytes, listener);
    else
      return net.listen(0, handle.bytes, listener);
  });
}

Code Net::connect(void* context, NetHandle& handle, void** sender) const {
  CommConfig config{-1};
  *sender = nullptr;
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (has_context<NetType>) {
      return net.connect(context, 0, handle.bytes, sender, nullptr);
    } else if constexpr (std::is_same_v<NetType, NetV10>) {
      return net.connect(0, &config, handle.bytes, sender, nullptr);
    } else {
      return net.connect(0, handle.bytes, sender, nullptr);
    }
  });
}

Code Net::accept(void* listener, void** receiver) const {
  *receiver = nullptr;
  return with([&](auto& net, auto) { return net.accept(listener, receiver, nullptr); });
}

Code Net::add(void* comm, void* data, size_t bytes, void** memory) const {
  return with([&](auto& net, auto) {
    return net.register_memory(comm, data, bytes, host_pointers, memory);
  });
}

Code Net::remove(void* comm, void* memory) const {
  return with([&](auto& net, auto) { return net.deregister_memory(comm, memory); });
}

Code Net::isend(void* sender, void* data, size_t bytes, int tag, void* memory,
                void** request) const {
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (std::is_same_v<NetType, NetV8>) {
      return net.isend(sender, data, static_cast<int>(bytes), tag, memory, request);
    } else if constexpr (std::is_same_v<NetType, NetV9>) {
      return net.isend(sender, data, bytes, tag, memory, request);
    } else {
      return net.isend(sender, data, bytes, tag, memory, nullptr, request);
    }
  });
}

Code Net::irecv(void* receiver, void* data, size_t bytes, int tag, void* memory,
                void** request) const {
  int small = static_cast<int>(bytes);
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (std::is_same_v<NetType, NetV8>) {
      return net.irecv(receiver, 1, &data, &small, &tag, &memory, request);
    } else if constexpr (std::is_same_v<NetType, NetV9>) {
      return net.irecv(receiver, 1, &data, &bytes, &tag, &memory, request);
    } else {
      return net.irecv(receiver, 1, &data, &bytes, &tag, &memory, nullptr, request);
    }
  });
}

Code Net::irecv(void* receiver, std::vector<void*> data, std::vector<size_t> bytes,
                std::vector<int> tags, std::vector<void*> memories, void** request) const {
  const int count = static_cast<int>(data.size());
  std::vector<int> small(bytes.begin(), bytes.end());
  return with([&]<class NetType>(NetType& net, auto) {
    if constexpr (std::is_same_v<NetType, NetV8>) {
      return net.irecv(receiver, count, data.data(), small.data(), tags.data(), memories.data(),
                       request);
    } else if constexpr (std::is_same_v<NetType, NetV9>) {
      return net.irecv(receiver, count, data.data(), bytes.data(), tags.data(), memories.data(),
                       request);
    } else {
      return net.irecv(receiver, count, data.data(), bytes.data(), tags.data(), memories.data(),
                       nullptr, request);
    }
  });
}

Code Net::iflush(void* receiver, void* data, int bytes, void* memory, void** request) const {
  return with(
      [&](auto& net, auto) { return net.iflush(receiver, 1, &data, &bytes, &memory, request); });
}

Code Net::test(void* request, int* done, int* bytes) const {
  return with([&](auto& net, auto) { return net.test(request, done, bytes); });
}
Code Net::close_send(void* sender) const {
  return with([&](auto& net, auto) { return net.close_send(sender); });
}
Code Net::close_receive(void* receiver) const {
  return with([&](auto& net, auto) { return net.close_receive(receiver); });
}
Code Net::close_listen(void* listener) const {
  return with([&](auto& net, auto) { return net.close_listen(listener); });
}

std::vector<std::string> Net::warnings() {
  const std::lock_guard held(log_mutex);
  return std::exchange(log_lines, {});
}

// ---- pairs and requests

Pair make_pair(const Net& net, void* context) {
  Pair out;
  NetHandle handle;
  REQUIRE(net.listen(context, handle, &out.listener) == Code::success);
  const auto until = Clock::now() + 20s;
  while (out.sender == nullptr || out.receiver == nullptr) {
    if (out.sender == nullptr) {
      REQUIRE(net.connect(context, handle, &out.sender) == Code::success);
    }
    if (out.receiver == nullptr) {
      REQUIRE(net.accept(out.listener, &out.receiver) == Code::success);
    }
    REQUIRE(Clock::now() < until);
  }
  return out;
}

void close_pair(const Net& net, const Pair& pair) {
  CHECK(net.close_send(pair.sender) == Code::success);
  CHECK(net.close_receive(pair.receiver) == Code::success);
  CHECK(net.close_listen(pair.listener) == Code::success);
}

Ended finish(const Net& net, void* request, std::chrono::milliseconds limit) {
  Ended out;
  const auto until = Clock::now() + limit;
  std::vector<int> bytes(8, -1);
  do {
    int done = 0;
    out.code = net.test(request, &done, bytes.data());
    out.done = done != 0;
  } while (!out.done && out.code == Code::success && Clock::now() < until);
  out.bytes = bytes;
  return out;
}

Ended finish(const Net& net, void* request) { return finish(net, request, 20s); }

void* send(const Net& net, void* sender, void* data, size_t bytes, int tag, void* memory) {
  void* request = nullptr;
  const auto until = Clock::now() + 20s;
  while (request == nullptr) {
    REQUIRE(net.isend(sender, data, bytes, tag, memory, &request) == Code::success);
    REQUIRE(Clock::now() < until);
  }
  return request;
}

void* receive(const Net& net, void* receiver, void* data, size_t bytes, int tag, void* memory) {
  void* request = nullptr;
  REQUIRE(net.irecv(receiver, data, bytes, tag, memory, &request) == Code::success);
  REQUIRE(request != nullptr);
  return request;
}

// ---- the process

size_t descriptors() { return entries("/proc/self/fd"); }
size_t threads() { return entries("/proc/self/task"); }

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

bool resident_has_grown(double mib_before) { return !sanitized && resident_mib() > mib_before + 8; }

void fill(std::vector<std::byte>& memory, unsigned number) {
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<std::byte>((i * 7 + i / 251 + number * 13) % 253);
  }
}

bool is_filled(const std::byte* memory, size_t bytes, unsigned number) {
  for (size_t i = 0; i < bytes; ++i) {
    if (memory[i] != static_cast<std::byte>((i * 7 + i / 251 + number * 13) % 253)) return false;
  }
  return true;
}

namespace {
std::string window() { return "/dev/shm/urma-nccl-test-" + std::to_string(getpid()); }
}  // namespace

std::vector<std::string> devices_of_tests() {
  return {"cxl:" + window() + "?size=64M", "udp:127.0.0.1"};
}

void remove_window() { unlink(window().c_str()); }

}  // namespace urma::test
