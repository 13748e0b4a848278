// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between NIXL 1.4 and its plugins (plugin API version 1): names, values, the order
// of members and of virtual functions are NIXL's, everything else is ours. Objects cross the border
// between plugin and agent, so no member and no virtual function may be moved or left out. Only
// agents make lists: the functions that change lists are here for the tests, which play an agent.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

enum nixl_mem_t { DRAM_SEG, VRAM_SEG, BLK_SEG, OBJ_SEG, FILE_SEG };
enum nixl_xfer_op_t { NIXL_READ, NIXL_WRITE };
enum nixl_status_t {
  NIXL_IN_PROG = 1,
  NIXL_SUCCESS = 0,
  NIXL_ERR_NOT_POSTED = -1,
  NIXL_ERR_INVALID_PARAM = -2,
  NIXL_ERR_BACKEND = -3,
  NIXL_ERR_NOT_FOUND = -4,
  NIXL_ERR_MISMATCH = -5,
  NIXL_ERR_NOT_ALLOWED = -6,
  NIXL_ERR_REPOST_ACTIVE = -7,
  NIXL_ERR_UNKNOWN = -8,
  NIXL_ERR_NOT_SUPPORTED = -9,
  NIXL_ERR_REMOTE_DISCONNECT = -10,
  NIXL_ERR_CANCELED = -11,
  NIXL_ERR_NO_TELEMETRY = -12,
};
enum class nixl_thread_sync_t {
  NIXL_THREAD_SYNC_NONE,
  NIXL_THREAD_SYNC_STRICT,
  NIXL_THREAD_SYNC_RW,
};
enum class nixl_cost_t { ANALYTICAL_BACKEND };

using nixl_backend_t = std::string;
using nixl_blob_t = std::string;
using nixl_mem_list_t = std::vector<nixl_mem_t>;
using nixl_b_params_t = std::unordered_map<std::string, std::string>;
using nixl_query_resp_t = std::optional<nixl_b_params_t>;
using nixlMemViewH = void*;
using notif_list_t = std::vector<std::pair<std::string, std::string>>;
struct nixlAgentOptionalArgs;

// A range of memory.
class nixlBasicDesc {
 public:
  uintptr_t addr = 0;
  size_t len = 0;
  uint64_t devId = 0;

  nixlBasicDesc() = default;
  nixlBasicDesc(uintptr_t address, size_t bytes, uint64_t device)
      : addr(address), len(bytes), devId(device) {}
};

// A range and a text: of registered memory, what the owner's plugin published about it.
class nixlBlobDesc : public nixlBasicDesc {
 public:
  nixl_blob_t metaInfo;

  using nixlBasicDesc::nixlBasicDesc;
};

// Registered memory, as a plugin knows it.
class nixlBackendMD {
 protected:
  bool isPrivateMD;

 public:
  explicit nixlBackendMD(bool isPrivate) : isPrivateMD(isPrivate) {}
  virtual ~nixlBackendMD() = default;
};

// A range, and the plugin's object of the memory in which it lies.
class nixlMetaDesc : public nixlBasicDesc {
 public:
  nixlBackendMD* metadataP = nullptr;

  using nixlBasicDesc::nixlBasicDesc;
};

struct nixlRemoteMetaDesc : nixlMetaDesc {
  std::string remoteAgent;

  using nixlMetaDesc::nixlMetaDesc;
};

template <class T>
class nixlDescList {
 protected:
  nixl_mem_t type;
  std::vector<T> descs;

 public:
  explicit nixlDescList(nixl_mem_t memory) : type(memory) {}
  nixlDescList(const nixlDescList&) = default;
  nixlDescList& operator=(const nixlDescList&) = default;
  virtual ~nixlDescList() = default;
  virtual void resize(const size_t& count) { descs.resize(count); }
  virtual void addDesc(const T& desc) { descs.push_back(desc); }
  virtual int getIndex(const nixlBasicDesc&) const { return NIXL_ERR_NOT_FOUND; }

  nixl_mem_t getType() const { return type; }
  int descCount() const { return static_cast<int>(descs.size()); }
  const T& operator[](size_t index) const { return descs[index]; }
  T& operator[](size_t index) { return descs[index]; }
};
using nixl_meta_dlist_t = nixlDescList<nixlMetaDesc>;
using nixl_remote_meta_dlist_t = nixlDescList<nixlRemoteMetaDesc>;
using nixl_reg_dlist_t = nixlDescList<nixlBlobDesc>;

// Options of one transfer.
struct nixlBackendOptionalArgs {
  nixl_blob_t notifMsg;
  bool hasNotif = false;
  nixl_blob_t customParam;
};
using nixl_opt_b_args_t = nixlBackendOptionalArgs;

// Parameters of the engine that an agent makes.
class nixlBackendInitParams {
 public:
  std::string localAgent;
  nixl_backend_t type;
  nixl_b_params_t* customParams = nullptr;
  bool enableProgTh = false;
  uint64_t pthrDelay = 0;  // microseconds
  nixl_thread_sync_t syncMode = nixl_thread_sync_t::NIXL_THREAD_SYNC_NONE;
  bool enableTelemetry_ = false;
};

// A transfer, as the agent holds it.
class nixlBackendReqH {
 public:
  nixlBackendReqH() = default;
  virtual ~nixlBackendReqH() = default;
};

// An engine moves the bytes of one agent.
class nixlBackendEngine {
 private:
  nixl_backend_t backendType;
  nixl_b_params_t customParams;
  // NIXL's vector of telemetry events, which this plugin does not fill.
  std::vector<uint64_t> telemetryEvents_;
  std::mutex telemetryEventsMutex_;

 protected:
  bool initErr = false;
  const std::string localAgent;
  const bool enableTelemetry_;

 public:
  explicit nixlBackendEngine(const nixlBackendInitParams* params)
      : backendType(params->type),
        customParams(*params->customParams),
        localAgent(params->localAgent),
        enableTelemetry_(params->enableTelemetry_) {}
  nixlBackendEngine(const nixlBackendEngine&) = delete;
  nixlBackendEngine& operator=(const nixlBackendEngine&) = delete;
  virtual ~nixlBackendEngine() = default;

  bool getInitErr() const noexcept { return initErr; }

  virtual bool supportsRemote() const = 0;
  virtual bool supportsLocal() const = 0;
  virtual bool supportsNotif() const = 0;
  virtual nixl_mem_list_t getSupportedMems() const = 0;
  virtual nixl_status_t registerMem(const nixlBlobDesc& memory, const nixl_mem_t& type,
                                    nixlBackendMD*& out) = 0;
  virtual nixl_status_t deregisterMem(nixlBackendMD* memory) = 0;
  virtual nixl_status_t connect(const std::string& agent) = 0;
  virtual nixl_status_t disconnect(const std::string& agent) = 0;
  virtual nixl_status_t unloadMD(nixlBackendMD* memory) = 0;
  virtual nixl_status_t prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                                 const nixl_meta_dlist_t& remote, const std::string& agent,
                                 nixlBackendReqH*& handle,
                                 const nixl_opt_b_args_t* options = nullptr) const = 0;
  virtual nixl_status_t postXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                                 const nixl_meta_dlist_t& remote, const std::string& agent,
                                 nixlBackendReqH*& handle,
                                 const nixl_opt_b_args_t* options = nullptr) const = 0;
  virtual nixl_status_t checkXfer(nixlBackendReqH* handle) const = 0;
  virtual nixl_status_t releaseReqH(nixlBackendReqH* handle) const = 0;
  virtual nixl_status_t prepMemView(const nixl_remote_meta_dlist_t&, nixlMemViewH&,
                                    const nixl_opt_b_args_t* = nullptr) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
  virtual nixl_status_t prepMemView(const nixl_meta_dlist_t&, nixlMemViewH&,
                                    const nixl_opt_b_args_t* = nullptr) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
  virtual void releaseMemView(nixlMemViewH) const {}
  virtual nixl_status_t getPublicData(const nixlBackendMD*, std::string&) const {
    return NIXL_ERR_BACKEND;
  }
  virtual nixl_status_t getConnInfo(std::string&) const { return NIXL_ERR_BACKEND; }
  virtual nixl_status_t loadRemoteConnInfo(const std::string&, const std::string&) {
    return NIXL_ERR_BACKEND;
  }
  virtual nixl_status_t loadRemoteMD(const nixlBlobDesc&, const nixl_mem_t&, const std::string&,
                                     nixlBackendMD*&) {
    return NIXL_ERR_BACKEND;
  }
  virtual nixl_status_t loadLocalMD(nixlBackendMD*, nixlBackendMD*&) { return NIXL_ERR_BACKEND; }
  virtual nixl_status_t getNotifs(notif_list_t&) { return NIXL_ERR_BACKEND; }
  virtual nixl_status_t genNotif(const std::string&, const std::string&) const {
    return NIXL_ERR_BACKEND;
  }
  virtual nixl_status_t queryMem(const nixl_reg_dlist_t&, std::vector<nixl_query_resp_t>&) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
  virtual nixl_status_t estimateXferCost(const nixl_xfer_op_t&, const nixl_meta_dlist_t&,
                                         const nixl_meta_dlist_t&, const std::string&,
                                         nixlBackendReqH* const&, std::chrono::microseconds&,
                                         std::chrono::microseconds&, nixl_cost_t&,
                                         const nixlAgentOptionalArgs* = nullptr) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
};

#define NIXL_PLUGIN_API_VERSION 1

// The plugin, as nixl_plugin_init returns it.
class nixlBackendPlugin {
 public:
  int api_version;
  nixlBackendEngine* (*create_engine)(const nixlBackendInitParams* params);
  void (*destroy_engine)(nixlBackendEngine* engine);
  const char* (*get_plugin_name)();
  const char* (*get_plugin_version)();
  nixl_b_params_t (*get_backend_options)();
  nixl_mem_list_t (*get_backend_mems)();
};

extern "C" {
__attribute__((visibility("default"))) nixlBackendPlugin* nixl_plugin_init();
__attribute__((visibility("default"))) void nixl_plugin_fini();
}
