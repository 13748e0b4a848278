// SPDX-License-Identifier: Apache-2.0
#include "umdk/checks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "umdk/device_list.h"
#include "umdk/group.h"
#include "umdk/handle.h"
#include "umdk/jfc.h"
#include "umdk/jfce.h"
#include "umdk/jfr.h"
#include "umdk/log.h"
#include "umdk/segment.h"

namespace urma::umdk {
namespace {

constexpr uint64_t most_timer = 31;  // the largest exponent of a time

const urma_device_cap_t& cap() { return attributes().dev_cap; }

urma_status_t check_range(const char* call, const char* what, uint64_t value, uint64_t least,
                          uint64_t most) {
  if (value >= least && value <= most) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call, "%s is %llu, which is out of range. Fix: choose %llu to %llu",
                what, static_cast<unsigned long long>(value),
                static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
}

urma_status_t check_id(const char* call, uint32_t id) {
  if (id == 1) {
    return refuse(URMA_EINVAL, call,
                  "id is 1, which is reserved. Fix: choose 2 to %u, or 0 for any number",
                  first_automatic - 1);
  }
  return check_range(call, "id", id, 0, first_automatic - 1);
}

// Returns the first failure.
template <class... Statuses>
urma_status_t first(Statuses... statuses) {
  urma_status_t failed = URMA_SUCCESS;
  ((failed = failed == URMA_SUCCESS ? statuses : failed), ...);
  return failed;
}

// Returns whether the object exists and belongs to the context.
template <class Object>
bool is_of(const Object* object, const Context& context) {
  return object != nullptr && object->urma_ctx == &context;
}

// C++ does not define what reading an enumeration means that a C program set to another number.
template <class Enumeration>
uint32_t number_of(const Enumeration& value) {
  uint32_t number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

urma_status_t check_active(const char* call, urma_jfc_t* given, const Context& context) {
  const Jfc* const jfc = find<Jfc>(given);
  if (is_of(jfc, context) && jfc->active()) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "the JFC is null, deleted, not active or of another context. Fix: name one of this "
                "context");
}

}  // namespace

urma_status_t settle_order(const char* call, const urma_transport_mode_t& given, uint32_t& order) {
  if (const auto status = settle_target_order(call, given, order)) return status;
  const uint32_t mode = number_of(given);
  const bool fits = mode == URMA_TM_RM   ? order == URMA_OI
                    : mode == URMA_TM_RC ? order != URMA_OI
                                         : order == URMA_NO;
  if (fits) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "the order_type %u does not exist in this trans_mode. Fix: leave it at 0", order);
}

urma_status_t settle_target_order(const char* call, const urma_transport_mode_t& given,
                                  uint32_t& order) {
  const uint32_t mode = number_of(given);
  if (mode != URMA_TM_RM && mode != URMA_TM_RC && mode != URMA_TM_UM) {
    return refuse(URMA_EINVAL, call,
                  "trans_mode is %u. Fix: choose URMA_TM_RM, URMA_TM_RC or URMA_TM_UM", mode);
  }
  if (order == URMA_DEF_ORDER) {
    order = mode == URMA_TM_RM ? URMA_OI : mode == URMA_TM_RC ? URMA_OL : URMA_NO;
  }
  return check_range(call, "order_type", order, URMA_DEF_ORDER, URMA_NO);
}

urma_status_t check_policy(const char* call, uint32_t policy) {
  if (policy <= URMA_TOKEN_PLAIN_TEXT) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "tokens that sign or encrypt are not supported. Fix: choose "
                "URMA_TOKEN_PLAIN_TEXT");
}

WorkLimits limits_of(const urma_jfs_cfg_t& cfg) {
  return {.ranges = cfg.max_sge > 0 ? cfg.max_sge : cap().max_jfs_sge,
          .remote_ranges = cfg.max_rsge > 0 ? cfg.max_rsge : cap().max_jfs_rsge,
          .inline_bytes = cfg.max_inline_data > 0 ? cfg.max_inline_data : cap().max_jfs_inline_len};
}

uint32_t most_ranges_of(const urma_jfr_cfg_t& cfg) {
  return cfg.max_sge > 0 ? std::bit_ceil(uint32_t{cfg.max_sge}) : cap().max_jfr_sge;
}

urma_status_t check_advice(const char* call, const urma_transport_mode_t& here,
                           const urma_transport_mode_t& there) {
  if (here == URMA_TM_RM && there == URMA_TM_RM) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "only connections of URMA_TM_RM are advised. Fix: leave the call out");
}

urma_status_t check_records(const char* call, int count, uint32_t depth) {
  return check_range(call, "cr_cnt", static_cast<uint64_t>(std::max(count, 0)), 1, depth);
}

urma_status_t check(const char* call, const urma_jfs_cfg_t& cfg, const Context& context) {
  constexpr uint64_t most_retries = 7;
  return first(
      check_active(call, cfg.jfc, context),
      check_range(call, "depth", cfg.depth, 1, cap().max_jfs_depth),
      check_range(call, "priority", cfg.priority, 0, URMA_MAX_PRIORITY),
      check_range(call, "rnr_retry", cfg.rnr_retry, 0, most_retries),
      check_range(call, "err_timeout", cfg.err_timeout, 0, most_timer),
      check_range(call, "max_inline_data", cfg.max_inline_data, 0, cap().max_jfs_inline_len),
      check_range(call, "max_sge", cfg.max_sge, 0, cap().max_jfs_sge),
      check_range(call, "max_rsge", cfg.max_rsge, 0, cap().max_jfs_rsge));
}

urma_status_t check(const char* call, const urma_jfr_cfg_t& cfg, const Context& context) {
  return first(check_policy(call, cfg.flag.bs.token_policy), check_active(call, cfg.jfc, context),
               check_id(call, cfg.id),
               check_range(call, "depth", cfg.depth, 1, cap().max_jfr_depth),
               check_range(call, "min_rnr_timer", cfg.min_rnr_timer, 0, most_timer),
               check_range(call, "max_sge", cfg.max_sge, 0, cap().max_jfr_sge));
}

urma_status_t check(const char* call, const urma_jfc_cfg_t& cfg, const Context& context) {
  if (cfg.jfce != nullptr && !is_of(find<Jfce>(cfg.jfce), context)) {
    return refuse(URMA_EINVAL, call,
                  "the JFCE is deleted or of another context. Fix: name one of this context");
  }
  return check_range(call, "depth", cfg.depth, 1, cap().max_jfc_depth);
}

namespace {

// A Jetty may be in one group, whose token is that of its messages.
urma_status_t check_group(const char* call, const urma_jetty_cfg_t& cfg, const Jfr& jfr,
                          const Context& context) {
  if (cfg.jetty_grp == nullptr) return URMA_SUCCESS;
  const Group* const group = find<Group>(cfg.jetty_grp);
  if (!is_of(group, context)) {
    return refuse(URMA_EINVAL, call,
                  "jetty_grp is deleted or of another context. Fix: name one of this context");
  }
  if (cfg.jfs_cfg.trans_mode != URMA_TM_RM) {
    return refuse(URMA_EINVAL, call,
                  "only Jetties of URMA_TM_RM are members of groups. Fix: choose that mode, or "
                  "leave jetty_grp null");
  }
  if (jfr.token() != token_of(group->cfg.flag.bs.token_policy, group->cfg.token_value)) {
    return refuse(URMA_EINVAL, call,
                  "the token of the JFR differs from that of the group. Fix: choose the same");
  }
  return URMA_SUCCESS;
}

}  // namespace

urma_status_t check(const char* call, const urma_jetty_cfg_t& cfg, const Context& context) {
  if (cfg.flag.bs.share_jfr != URMA_SHARE_JFR) {
    return refuse(URMA_EINVAL, call,
                  "share_jfr is 0, and Jetties of UB share a JFR. Fix: set it, and name a JFR in "
                  "shared.jfr");
  }
  Jfr* const jfr = find<Jfr>(cfg.shared.jfr);
  if (!is_of(jfr, context) || !jfr->active()) {
    return refuse(URMA_EINVAL, call,
                  "shared.jfr is null, deleted, not active or of another context. Fix: name one of "
                  "this context");
  }
  if (cfg.shared.jfc != nullptr && cfg.shared.jfc != jfr->jfr_cfg.jfc) {
    return refuse(URMA_EINVAL, call,
                  "shared.jfc is not the JFC of the JFR, in which arrivals complete. Fix: leave it "
                  "null");
  }
  const bool same_order = cfg.jfs_cfg.flag.bs.order_type == jfr->jfr_cfg.flag.bs.order_type;
  if (cfg.jfs_cfg.trans_mode != jfr->jfr_cfg.trans_mode || !same_order) {
    return refuse(URMA_EINVAL, call,
                  "the trans_mode or order_type of the Jetty differs from that of its JFR. Fix: "
                  "choose the same");
  }
  return first(check_id(call, cfg.id), check_group(call, cfg, *jfr, context),
               check(call, cfg.jfs_cfg, context));
}

urma_status_t check(const char* call, const urma_jetty_grp_cfg_t& cfg) {
  const uint32_t policy = number_of(cfg.policy);
  if (policy != URMA_JETTY_GRP_POLICY_RR && policy != URMA_JETTY_GRP_POLICY_HASH_HINT) {
    return refuse(URMA_EINVAL, call,
                  "policy is %u. Fix: choose URMA_JETTY_GRP_POLICY_RR or _HASH_HINT", policy);
  }
  return first(check_id(call, cfg.id), check_policy(call, cfg.flag.bs.token_policy));
}

urma_status_t check(const char* call, const urma_seg_cfg_t& cfg, const Context& context) {
  constexpr uint32_t known =
      URMA_ACCESS_LOCAL_ONLY | URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  const uint32_t access = cfg.flag.bs.access;
  if ((access & ~known) != 0) {
    return refuse(URMA_EINVAL, call,
                  "access is 0x%x, which has unknown bits. Fix: choose URMA_ACCESS_ constants",
                  access);
  }
  const bool reads = (access & URMA_ACCESS_READ) != 0;
  const bool writes = (access & URMA_ACCESS_WRITE) != 0;
  const bool changes = (access & URMA_ACCESS_ATOMIC) != 0;
  const bool local = (access & URMA_ACCESS_LOCAL_ONLY) != 0;
  if ((local && access != URMA_ACCESS_LOCAL_ONLY) || (writes && !reads) ||
      (changes && !(reads && writes))) {
    return refuse(URMA_EINVAL, call,
                  "access is 0x%x. Fix: LOCAL_ONLY stands alone, WRITE needs READ, and ATOMIC "
                  "needs both",
                  access);
  }
  if ((cfg.flag.bs.token_id_valid != 0) != (cfg.token_id != nullptr)) {
    return refuse(URMA_EINVAL, call,
                  "token_id and token_id_valid contradict each other. Fix: give both, or neither");
  }
  if (cfg.token_id != nullptr && !is_of(find<Token>(cfg.token_id), context)) {
    return refuse(URMA_EINVAL, call,
                  "token_id is deleted or of another context. Fix: make one in this context");
  }
  if (cfg.flag.bs.user_iova != 0) {
    return refuse(URMA_EINVAL, call,
                  "segments with addresses of the user's choice (user_iova) are not supported. "
                  "Fix: let peers use the addresses of the owner");
  }
  return check_policy(call, cfg.flag.bs.token_policy);
}

urma_status_t check(const char* call, const urma_rjetty_t& described) {
  const uint32_t type = number_of(described.type);
  if (type != URMA_JETTY && type != URMA_JETTY_GROUP) {
    return refuse(URMA_EINVAL, call,
                  "type is %u. Fix: choose URMA_JETTY, or call urma_import_jfr for a JFR", type);
  }
  if (type == URMA_JETTY_GROUP && number_of(described.trans_mode) != URMA_TM_RM) {
    return refuse(URMA_EINVAL, call,
                  "only Jetties of URMA_TM_RM reach groups. Fix: choose that mode");
  }
  const uint32_t channel = number_of(described.tp_type);
  const bool datagrams = number_of(described.trans_mode) == URMA_TM_UM;
  if (channel == URMA_CTP || channel == (datagrams ? URMA_UTP : URMA_RTP)) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "the tp_type %u does not exist in this trans_mode. Fix: URMA_UTP is for "
                "URMA_TM_UM, URMA_RTP for the others, URMA_CTP for all",
                channel);
}

urma_status_t check(const char* call, const urma_rjfr_t& described) {
  return check_range(call, "tp_type", number_of(described.tp_type), URMA_RTP, URMA_UTP);
}

namespace {

urma_status_t check_mask(const char* call, uint32_t mask, uint32_t known) {
  if (mask != 0 && (mask & ~known) == 0) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "mask is 0x%x, which names no attribute, or unknown ones. Fix: choose bits of 0x%x",
                mask, known);
}

// `last`: the state with the highest number.
urma_status_t check_state(const char* call, uint32_t state, uint32_t last) {
  if (state <= last) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call, "the state %u does not exist. Fix: choose one of urma_opcode.h",
                state);
}

urma_status_t check_threshold(const char* call, uint32_t threshold, const urma_jfr_cfg_t& cfg) {
  constexpr uint32_t least = 64;  // UMDK's driver makes no shorter JFR
  const uint32_t receives = std::max(std::bit_ceil(cfg.depth), least);
  return check_range(call, "rx_threshold", threshold, 0, receives);
}

}  // namespace

urma_status_t check(const char* call, const urma_jfc_attr_t& attr) {
  return check_mask(call, attr.mask, JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD);
}

urma_status_t check(const char* call, const urma_jfs_attr_t& attr) {
  if (const auto status = check_mask(call, attr.mask, JFS_STATE)) return status;
  return check_state(call, number_of(attr.state), URMA_JETTY_STATE_ERROR);
}

urma_status_t check(const char* call, const urma_jfr_attr_t& attr, const urma_jfr_cfg_t& cfg) {
  if (const auto status = check_mask(call, attr.mask, JFR_RX_THRESHOLD | JFR_STATE)) return status;
  if ((attr.mask & JFR_RX_THRESHOLD) != 0) {
    if (const auto status = check_threshold(call, attr.rx_threshold, cfg)) return status;
  }
  if ((attr.mask & JFR_STATE) == 0) return URMA_SUCCESS;
  return check_state(call, number_of(attr.state), URMA_JFR_STATE_ERROR);
}

urma_status_t check(const char* call, const urma_jetty_attr_t& attr, const urma_jfr_cfg_t& cfg) {
  constexpr uint32_t known = JETTY_RX_THRESHOLD | JETTY_STATE;
  if (const auto status = check_mask(call, attr.mask, known)) return status;
  if ((attr.mask & JETTY_RX_THRESHOLD) != 0) {
    if (const auto status = check_threshold(call, attr.rx_threshold, cfg)) return status;
  }
  if ((attr.mask & JETTY_STATE) == 0) return URMA_SUCCESS;
  return check_state(call, number_of(attr.state), URMA_JETTY_STATE_ERROR);
}

// UMDK's driver leads a queue from each state to one other, and suspends one that is ready.
urma_status_t check_change(const char* call, urma_jetty_state_t from, urma_jetty_state_t to) {
  constexpr std::array names = {"RESET", "READY", "SUSPENDED", "ERROR"};
  constexpr std::array next = {URMA_JETTY_STATE_READY, URMA_JETTY_STATE_ERROR,
                               URMA_JETTY_STATE_ERROR, URMA_JETTY_STATE_RESET};
  if (to == next[from]) return URMA_SUCCESS;
  if (from == URMA_JETTY_STATE_READY && to == URMA_JETTY_STATE_SUSPENDED) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call,
                "the state of a queue does not change from %s to %s. Fix: change it to %s first",
                names[from], names[to], names[next[from]]);
}

urma_status_t check_change(const char* call, urma_jfr_state_t from, urma_jfr_state_t to) {
  constexpr std::array states = {URMA_JETTY_STATE_RESET, URMA_JETTY_STATE_READY,
                                 URMA_JETTY_STATE_ERROR};
  return check_change(call, states[from], states[to]);
}

urma_status_t refuse_reset(const char* call) {
  return refuse(URMA_EINVAL, often(call),
                "the queue is in the state RESET. Fix: change its state to READY first");
}

}  // namespace urma::umdk
