// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugins/nixl/mailbox.h"
#include "plugins/nixl/nixl.h"
#include "plugins/nixl/options.h"
#include "plugins/nixl/peer.h"
#include "plugins/nixl/service.h"
#include "urma/urma.hpp"

namespace urma::nixl {

// The backend of one agent: a device, its mailbox, and the agents that it knows. NIXL calls it from
// several threads. No function throws.
class Engine final : public nixlBackendEngine {
 public:
  explicit Engine(const nixlBackendInitParams* params);
  ~Engine() override;

  bool supportsRemote() const override { return true; }
  bool supportsLocal() const override { return true; }
  bool supportsNotif() const override { return true; }
  nixl_mem_list_t getSupportedMems() const override { return {DRAM_SEG, VRAM_SEG}; }

  nixl_status_t registerMem(const nixlBlobDesc& memory, const nixl_mem_t& type,
                            nixlBackendMD*& out) override;
  nixl_status_t deregisterMem(nixlBackendMD* memory) override;
  nixl_status_t getPublicData(const nixlBackendMD* memory, std::string& out) const override;
  nixl_status_t loadLocalMD(nixlBackendMD* memory, nixlBackendMD*& out) override;
  nixl_status_t loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& type,
                             const std::string& agent, nixlBackendMD*& out) override;
  nixl_status_t unloadMD(nixlBackendMD* memory) override;

  nixl_status_t getConnInfo(std::string& out) const override;
  nixl_status_t loadRemoteConnInfo(const std::string& agent, const std::string& info) override;
  nixl_status_t connect(const std::string& agent) override;
  nixl_status_t disconnect(const std::string& agent) override;

  nixl_status_t prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                         const nixl_meta_dlist_t& remote, const std::string& agent,
                         nixlBackendReqH*& handle, const nixl_opt_b_args_t* options) const override;
  nixl_status_t postXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                         const nixl_meta_dlist_t& remote, const std::string& agent,
                         nixlBackendReqH*& handle, const nixl_opt_b_args_t* options) const override;
  nixl_status_t checkXfer(nixlBackendReqH* handle) const override;
  nixl_status_t releaseReqH(nixlBackendReqH* handle) const override;

  nixl_status_t getNotifs(notif_list_t& out) override;
  nixl_status_t genNotif(const std::string& agent, const std::string& text) const override;

 private:
  struct Known {
    std::string mailbox;  // its descriptor
    std::shared_ptr<Peer> peer;
  };
  // A device that is open, and what belongs to it.
  struct Open {
    Device device;
    std::unique_ptr<Mailbox> mailbox;
    std::unique_ptr<Service> service;
  };

  Result<void> open(const nixl_b_params_t& params);
  bool look();
  bool progress_of_peers();
  Result<std::shared_ptr<Peer>> peer_of(const std::string& agent) const;
  Result<std::shared_ptr<Peer>> make_peer(const std::string& mailbox) const;
  Result<std::vector<std::vector<std::byte>>> messages(const nixl_opt_b_args_t* options) const;

  Options options_;
  mutable std::optional<Open> open_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<std::string, Known> known_;
  mutable std::atomic<uint64_t> notes_ = 0;
};

}  // namespace urma::nixl
