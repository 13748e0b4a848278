// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/session.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <mutex>

#include "plugins/nccl/log.h"

namespace urma::nccl {
namespace {

// NCCL decides by the speed how many channels it uses, and does not measure it.
constexpr int window_mbps = 100'000;
constexpr int network_mbps = 10'000;
constexpr float window_latency_us = 1;
constexpr float network_latency_us = 10;
// Each rank needs some Jetties for each other rank and channel.
constexpr Limits limits{.jetties = 16'384, .peers = 16'384, .segments = 65'536};

// These have no destructors, which could run after the plugin was unloaded.
std::mutex mutex;
Session* shared = nullptr;
size_t uses = 0;

// A handle has room for the address of one engine.
Result<void> has_one_engine(Device& device) {
  const auto jetty = device.jetty({.berths = 1});
  if (!jetty) return jetty.error();
  const auto descriptor = parse_descriptor(jetty->descriptor());
  if (!descriptor) return descriptor.error();
  if (descriptor->engines.empty()) return {};
  return Error{Status::unsupported,
               "the device has several engines, whose addresses do not fit into a handle of NCCL. "
               "Fix: leave engines= out of URMA_NCCL_DEVICE"};
}

Result<Session*> make_session() {
  auto settings = read_settings();
  if (!settings) return settings.error();
  DeviceOptions options;
  options.operation_timeout = settings->timeout;
  options.limits = limits;
  auto device_string = with_address(settings->device);
  if (!device_string) return device_string.error();
  auto device = device_string->empty() ? open(options) : open(*device_string, options);
  if (!device) return device.error();
  if (const auto one = has_one_engine(*device); !one) return one.error();
  inform("liburma uses %s", device->description().c_str());
  return new Session(std::move(*settings), std::move(*device));
}

}  // namespace

Session::Session(Settings chosen, Device opened)
    : settings(std::move(chosen)),
      device(std::move(opened)),
      copier(settings.copier && in_window(device.endpoint().address)),
      window_(in_window(device.endpoint().address)),
      process_(getpid()) {}

bool Session::is_own() const { return process_ == getpid(); }

int Session::speed_mbps() const {
  if (settings.speed_mbps != 0) return settings.speed_mbps;
  return window_ ? window_mbps : network_mbps;
}

float Session::latency_us() const { return window_ ? window_latency_us : network_latency_us; }

uint64_t Session::host_number() {
  char text[64] = "";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen("/proc/sys/kernel/random/boot_id", "re"), std::fclose);
  if (file != nullptr && std::fgets(text, sizeof text, file.get()) == nullptr) text[0] = 0;
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char* c = text; *c != 0; ++c) {
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3;
  }
  return hash;
}

Result<SessionRef> SessionRef::acquire() {
  const std::lock_guard held(mutex);
  if (shared != nullptr && !shared->is_own()) {
    return Error{Status::forked,
                 "this process is a child of the one that initialized NCCL. Fix: start processes "
                 "that use NCCL by spawn, not by fork"};
  }
  if (shared == nullptr) {
    auto made = make_session();
    if (!made) return made.error();
    shared = *made;
  }
  ++uses;
  return SessionRef(*shared);
}

SessionRef::~SessionRef() {
  if (session_ == nullptr || !session_->is_own()) return;
  // The mutex is held while the device is closed, so that a thread that opens it finds its address
  // free.
  const std::lock_guard held(mutex);
  if (--uses > 0) return;
  delete shared;
  shared = nullptr;
}

}  // namespace urma::nccl
