// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of values, for programs that print them. A value that does not exist is
// "Invalid Value".

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define URMA_DEVICE_FEAT_NUM 9
#define URMA_ATOMIC_FEAT_NUM 7

static inline const char* urma_mtu_to_string(urma_mtu_t mtu) {
  switch (mtu) {
    case URMA_MTU_256:
      return "MTU_256";
    case URMA_MTU_512:
      return "MTU_512";
    case URMA_MTU_1024:
      return "MTU_1024";
    case URMA_MTU_2048:
      return "MTU_2048";
    case URMA_MTU_4096:
      return "MTU_4096";
    case URMA_MTU_8192:
      return "MTU_8192";
  }
  return "Invalid Value";
}

static inline const char* urma_port_state_to_string(urma_port_state_t state) {
  switch (state) {
    case URMA_PORT_NOP:
      return "NOP";
    case URMA_PORT_DOWN:
      return "DOWN";
    case URMA_PORT_INIT:
      return "INIT";
    case URMA_PORT_ARMED:
      return "ARMED";
    case URMA_PORT_ACTIVE:
      return "ACTIVE";
    case URMA_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
  }
  return "Invalid Value";
}

static inline const char* urma_speed_to_string(urma_speed_t speed) {
  switch (speed) {
    case URMA_SP_10M:
      return "SP_10M";
    case URMA_SP_100M:
      return "SP_100M";
    case URMA_SP_1G:
      return "SP_1G";
    case URMA_SP_2_5G:
      return "SP_2.5G";
    case URMA_SP_5G:
      return "SP_5G";
    case URMA_SP_10G:
      return "SP_10G";
    case URMA_SP_14G:
      return "SP_14G";
    case URMA_SP_25G:
      return "SP_25G";
    case URMA_SP_40G:
      return "SP_40G";
    case URMA_SP_50G:
      return "SP_50G";
    case URMA_SP_100G:
      return "SP_100G";
    case URMA_SP_200G:
      return "SP_200G";
    case URMA_SP_400G:
      return "SP_400G";
    case URMA_SP_800G:
      return "SP_800G";
  }
  return "Invalid Value";
}

static inline const char* urma_link_width_to_string(urma_link_width_t width) {
  switch (width) {
    case URMA_LINK_X1:
      return "LINK_X1";
    case URMA_LINK_X2:
      return "LINK_X2";
    case URMA_LINK_X4:
      return "LINK_X4";
    case URMA_LINK_X8:
      return "LINK_X8";
    case URMA_LINK_X16:
      return "LINK_X16";
    case URMA_LINK_X32:
      return "LINK_X32";
  }
  return "Invalid Value";
}

static inline const char* urma_tp_type_en_to_string(union urma_tp_type_en tp_type) {
  switch (tp_type.value & 7) {
    case 1:
      return "RTP";
    case 2:
      return "CTP";
    case 4:
      return "UTP";
    default:
      return "Invalid Value";
  }
}

// The name of one bit of urma_device_feature_t.
static inline const char* urma_device_feat_to_string(uint8_t bit) {
  static const char* const names[URMA_DEVICE_FEAT_NUM] = {
      "OUT_OF_ORDER",    "JFC_PER_WR", "STRIDE_OP",    "LOAD_STORE_OP",    "NON_PIN",
      "PERSISTENCE_MEM", "JFC_INLINE", "SPRAY_ENABLE", "SELECTIVE_RETRANS"};
  return bit < URMA_DEVICE_FEAT_NUM ? names[bit] : "Invalid Value";
}

// The name of one bit of urma_atomic_feature_t.
static inline const char* urma_atomic_feat_to_string(uint8_t bit) {
  static const char* const names[URMA_ATOMIC_FEAT_NUM] = {
      "compare_and_swap", "swap",         "fetch_and_add", "fetch_and_sub",
      "fetch_and_and",    "fetch_and_or", "fetch_and_xor"};
  return bit < URMA_ATOMIC_FEAT_NUM ? names[bit] : "Invalid Value";
}

static inline const char* urma_trans_mode_to_string(urma_transport_mode_t mode) {
  switch (mode) {
    case URMA_TM_RM:
      return "RM(Reliable message)";
    case URMA_TM_RC:
      return "RC(Reliable connection)";
    case URMA_TM_UM:
      return "UM(Unreliable message)";
  }
  return "Invalid Value";
}

static inline const char* urma_tp_type_to_string(urma_transport_type_t type) {
  switch (type) {
    case URMA_TRANSPORT_UB:
      return "UB";
    case URMA_TRANSPORT_IB:
      return "IB";
    case URMA_TRANSPORT_IP:
      return "IP";
    case URMA_TRANSPORT_SOFTUB:
      return "SOFTUB";
    case URMA_TRANSPORT_HNS_UB:
      return "HNS_UB";
    case URMA_TRANSPORT_INVALID:
    case URMA_TRANSPORT_MAX:
      break;
  }
  return "Invalid Value";
}

// The name of one bit of urma_device_cap_t.congestion_ctrl_alg.
static inline const char* urma_congestion_ctrl_alg_to_string(uint8_t bit) {
  static const char* const names[URMA_TP_CC_NUM] = {
      "NONE",           "DCQCN", "CAQM", "LDCP",     "LDCP_L2_HEADER",
      "LDCP_TP_HEADER", "DIP",   "ACC",  "CUSTOM_1", "CUSTOM_2"};
  return bit < URMA_TP_CC_NUM ? names[bit] : "Invalid Value";
}

static inline const char* urma_jfc_state_to_string(uint8_t state) {
  static const char* const names[] = {"INVALID", "VALID", "ERROR"};
  return state <= URMA_JFC_STATE_ERROR ? names[state] : "Invalid Value";
}

static inline const char* urma_jetty_state_to_string(uint8_t state) {
  static const char* const names[] = {"RESET", "READY", "SUSPENDED", "ERROR"};
  return state <= URMA_JETTY_STATE_ERROR ? names[state] : "Invalid Value";
}

static inline const char* urma_jfr_state_to_string(uint8_t state) {
  static const char* const names[] = {"RESET", "READY", "ERROR"};
  return state <= URMA_JFR_STATE_ERROR ? names[state] : "Invalid Value";
}

#ifdef __cplusplus
}
#endif
