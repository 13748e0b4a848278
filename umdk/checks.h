// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/include/ub/umdk/urma/urma_types.h"

namespace urma::umdk {

struct Context;

// The rules of UMDK's core for configurations. Each function writes why it refuses one to the log,
// and returns EINVAL then.

// Checks the mode, which may be any number, and the order, and replaces URMA_DEF_ORDER by what it
// means.
urma_status_t settle_order(const char* call, const urma_transport_mode_t& mode, uint32_t& order);
// As `settle_order`, for a target: any order that exists is accepted.
urma_status_t settle_target_order(const char* call, const urma_transport_mode_t& mode,
                                  uint32_t& order);
urma_status_t check(const char* call, const urma_jfs_cfg_t& cfg, const Context& context);
urma_status_t check(const char* call, const urma_jfr_cfg_t& cfg, const Context& context);
urma_status_t check(const char* call, const urma_jfc_cfg_t& cfg, const Context& context);
urma_status_t check(const char* call, const urma_jetty_cfg_t& cfg, const Context& context);
urma_status_t check(const char* call, const urma_jetty_grp_cfg_t& cfg);
urma_status_t check(const char* call, const urma_seg_cfg_t& cfg, const Context& context);
// How an importer shows its token.
urma_status_t check_policy(const char* call, uint32_t policy);
// How many records a call asks for, of a queue of so many works.
urma_status_t check_records(const char* call, int count, uint32_t depth);

}  // namespace urma::umdk
