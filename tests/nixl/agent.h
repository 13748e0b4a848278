// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/nixl/nixl.h"

namespace urma::test {

// The plugin, loaded as NIXL loads it.
inline nixlBackendPlugin& load_plugin(const char* file = URMA_NIXL_PLUGIN) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto init = reinterpret_cast<nixlBackendPlugin* (*)()>(dlsym(library, "nixl_plugin_init"));
  if (init == nullptr) throw std::runtime_error(dlerror());
  return *init();
}

inline bool soon(const std::function<bool()>& true_at_last,
                 std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!true_at_last()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

// NIXL's agent, as far as a backend sees it, with one registered range of memory: its own, or one
// of a GPU.
class Agent {
 public:
  Agent(std::string name, const std::string& device, size_t bytes = 1 << 20,
        nixl_b_params_t more = {})
      : Agent(std::move(name), device, std::vector<std::byte>(bytes), {}, std::move(more)) {}
  Agent(std::string name, const std::string& device, std::span<std::byte> gpu)
      : Agent(std::move(name), device, {}, gpu, {}) {}
  ~Agent() {
    if (there_ != nullptr) engine_->unloadMD(there_);
    if (own_ != nullptr) engine_->deregisterMem(own_);
  }

  nixlBackendEngine& engine() { return *engine_; }
  const std::string& name() const { return name_; }
  nixl_mem_t kind() const { return gpu_.empty() ? DRAM_SEG : VRAM_SEG; }
  void deregister() { engine_->deregisterMem(std::exchange(own_, nullptr)); }

  std::string info() const {
    std::string out;
    if (engine_->getConnInfo(out) != NIXL_SUCCESS) throw std::runtime_error("getConnInfo");
    return out;
  }
  nixlBlobDesc published() const {
    nixlBlobDesc out = all();
    if (engine_->getPublicData(own_, out.metaInfo) != NIXL_SUCCESS) {
      throw std::runtime_error("getPublicData");
    }
    return out;
  }
  // Learns of another agent, by what NIXL's metadata say.
  nixl_status_t load(const std::string& agent, const std::string& info,
                     const nixlBlobDesc& published, nixl_mem_t kind = DRAM_SEG) {
    if (there_ != nullptr) {
      engine_->disconnect(to_);
      engine_->unloadMD(std::exchange(there_, nullptr));
    }
    to_ = agent;
    there_address_ = published.addr;
    there_kind_ = kind;
    const nixl_status_t loaded = engine_->loadRemoteConnInfo(agent, info);
    return loaded != NIXL_SUCCESS ? loaded : engine_->loadRemoteMD(published, kind, agent, there_);
  }
  void load(const Agent& other) {
    if (load(other.name(), other.info(), other.published(), other.kind()) != NIXL_SUCCESS) {
      throw std::runtime_error("load");
    }
  }
  void load_itself() {
    to_ = name_;
    there_address_ = all().addr;
    there_kind_ = kind();
    if (engine_->loadLocalMD(own_, there_) != NIXL_SUCCESS) throw std::runtime_error("local");
  }

  // Ranges of both sides, of the same length.
  struct Range {
    size_t here;
    size_t there;
    size_t bytes;
  };
  nixlBackendReqH* prepare(nixl_xfer_op_t operation, const std::vector<Range>& ranges) {
    nixlBackendReqH* handle = nullptr;
    const auto [here, there] = lists(ranges);
    status_ = engine_->prepXfer(operation, here, there, to_, handle);
    return handle;
  }
  nixl_status_t prepared() const { return status_; }
  nixl_status_t post(nixlBackendReqH* handle, const std::string* note = nullptr) {
    const auto [here, there] = lists({});
    nixl_opt_b_args_t options;
    options.hasNotif = note != nullptr;
    if (note != nullptr) options.notifMsg = *note;
    return engine_->postXfer(NIXL_WRITE, here, there, to_, handle, &options);
  }
  nixl_status_t finish(nixlBackendReqH* handle, nixl_status_t status) {
    soon([&] {
      return status != NIXL_IN_PROG || (status = engine_->checkXfer(handle)) != NIXL_IN_PROG;
    });
    return status;
  }
  // Prepares, posts, waits and releases.
  nixl_status_t run(nixl_xfer_op_t operation, const std::vector<Range>& ranges,
                    const std::string* note = nullptr) {
    nixlBackendReqH* const handle = prepare(operation, ranges);
    if (handle == nullptr) return status_;
    const nixl_status_t status = finish(handle, post(handle, note));
    engine_->releaseReqH(handle);
    return status;
  }
  // Waits until so many notifications have come.
  notif_list_t notes(size_t count) {
    notif_list_t out;
    soon([&] {
      engine_->getNotifs(out);
      return out.size() >= count;
    });
    return out;
  }
  nixlMetaDesc meta(const Range& one) const {
    nixlMetaDesc out(there_address_ + one.there, one.bytes, 0);
    out.metadataP = there_;
    return out;
  }

  std::pair<nixl_meta_dlist_t, nixl_meta_dlist_t> lists(const std::vector<Range>& ranges) const {
    std::pair<nixl_meta_dlist_t, nixl_meta_dlist_t> out{kind(), there_kind_};
    for (const Range& one : ranges) {
      const nixlBlobDesc here = range(one.here, one.bytes);
      out.first.addDesc({here.addr, here.len, 0});
      out.second.addDesc(meta(one));
    }
    return out;
  }

  std::vector<std::byte> memory;

 private:
  Agent(std::string name, const std::string& device, std::vector<std::byte> own,
        std::span<std::byte> gpu, nixl_b_params_t more)
      : memory(std::move(own)), name_(std::move(name)), gpu_(gpu) {
    nixlBackendPlugin& plugin = load_plugin();
    params_ = std::move(more);
    params_["device"] = device;
    nixlBackendInitParams init;
    init.localAgent = name_;
    init.type = plugin.get_plugin_name();
    init.customParams = &params_;
    engine_.reset(plugin.create_engine(&init));
    if (!engine_) throw std::runtime_error("no engine for " + device);
    if (engine_->registerMem(all(), kind(), own_) != NIXL_SUCCESS) {
      throw std::runtime_error("not registered");
    }
  }

  nixlBlobDesc range(size_t offset, size_t bytes) const {
    const std::byte* const first = gpu_.empty() ? memory.data() : gpu_.data();
    return {reinterpret_cast<uintptr_t>(first) + offset, bytes, 0};
  }
  nixlBlobDesc all() const { return range(0, gpu_.empty() ? memory.size() : gpu_.size()); }

  const std::string name_;
  const std::span<std::byte> gpu_;
  nixl_b_params_t params_;
  std::unique_ptr<nixlBackendEngine> engine_;
  nixlBackendMD* own_ = nullptr;
  nixlBackendMD* there_ = nullptr;
  std::string to_;
  uintptr_t there_address_ = 0;
  nixl_mem_t there_kind_ = DRAM_SEG;
  nixl_status_t status_ = NIXL_SUCCESS;
};

// The devices on which tests run: a window of this test, and the network.
class Media {
 public:
  Media() : window_("/dev/shm/urma-nixl-" + std::to_string(getpid())) {}
  ~Media() { unlink(window_.c_str()); }
  std::vector<std::string> devices() const {
    return {"cxl:" + window_ + "?size=64M", "udp:127.0.0.1"};
  }

 private:
  const std::string window_;
};

}  // namespace urma::test
