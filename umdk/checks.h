// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/include/ub/umdk/urma/urma_types.h"

namespace urma::umdk {

struct Context;

// The rules of UMDK's core and driver for what a program gives to a call. A function that returns a
// status writes why it refuses something to the log, and returns EINVAL then.

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
// Checks what an owner told of its Jetty or JFR, except for what `settle_order` checks.
urma_status_t check(const char* call, const urma_rjetty_t& described);
urma_status_t check(const char* call, const urma_rjfr_t& described);

// Checks that a mask names attributes, and only such as exist, and that a state exists.
urma_status_t check(const char* call, const urma_jfc_attr_t& attr);
urma_status_t check(const char* call, const urma_jfs_attr_t& attr);
urma_status_t check(const char* call, const urma_jfr_attr_t& attr, const urma_jfr_cfg_t& cfg);
urma_status_t check(const char* call, const urma_jetty_attr_t& attr, const urma_jfr_cfg_t& cfg);
// Checks that a queue may change from one state to the other, which differs from it.
urma_status_t check_change(const char* call, urma_jetty_state_t from, urma_jetty_state_t to);
urma_status_t check_change(const char* call, urma_jfr_state_t from, urma_jfr_state_t to);
// Refuses what is posted to a queue in the state RESET.
[[gnu::noinline, gnu::cold]] urma_status_t refuse_reset(const char* call);

// The most that a work may have, by the configuration of its queue. 0 there means as much as the
// device allows.
struct WorkLimits {
  uint32_t ranges;         // local ones
  uint32_t remote_ranges;  // without that of a notification
  uint32_t inline_bytes;
};
WorkLimits limits_of(const urma_jfs_cfg_t& cfg);
// Returns how many ranges a receive may have. UMDK's driver rounds max_sge up to a power of two.
uint32_t most_ranges_of(const urma_jfr_cfg_t& cfg);
// Returns whether a work may have these flags. Datagrams (URMA_TM_UM) have no order.
inline bool has_valid_order(urma_jfs_wr_flag_t flag, bool is_datagram) {
  const bool ordered = (flag.bs.place_order | flag.bs.comp_order | flag.bs.fence) != 0;
  return flag.bs.place_order <= URMA_STRONG_ORDER && !(is_datagram && ordered);
}

// Checks the modes of both ends of a connection that a call advises.
urma_status_t check_advice(const char* call, const urma_transport_mode_t& here,
                           const urma_transport_mode_t& there);
// How an importer shows its token.
urma_status_t check_policy(const char* call, uint32_t policy);
// How many records a call asks for, of a queue of so many works.
urma_status_t check_records(const char* call, int count, uint32_t depth);

}  // namespace urma::umdk
