// SPDX-License-Identifier: Apache-2.0
#pragma once

// Devices that bond several others. liburma has none (paths(): does that below the API), and
// urma_user_ctl refuses their requests; the declarations are for programs that can use both kinds.

#include <stdint.h>

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define URMA_UBAGG_DEV_MAX_NUM 20

// Requests to urma_user_ctl.
typedef enum bondp_user_ctl_opcode {
  BONDP_USER_CTL_SET_BONDING_MODE_LEGACY = 4,
  BONDP_USER_CTL_ENABLE_SEG_CACHE = 5,
  BONDP_USER_CTL_QUERY_PORT = 6,
  BONDP_USER_CTL_SET_BONDING_MODE = 7,
  BONDP_USER_CTL_GET_JFCE_FD_LIST = 8,
  BONDP_USER_CTL_OPCODE_GET_RJETTY = 9,
  BONDP_USER_CTL_OPCODE_GET_SEG_CTX = 10,
  BONDP_USER_CTL_DISABLE_MSN = 11
} bondp_user_ctl_opcode_t;

typedef enum bondp_bonding_mode {
  BONDP_BONDING_MODE_STANDALONE,
  BONDP_BONDING_MODE_ACTIVE_BACKUP,
  BONDP_BONDING_MODE_BALANCE,
  BONDP_BONDING_MODE_MAX
} bondp_bonding_mode_t;

typedef enum bondp_bonding_level {
  BONDP_BONDING_LEVEL_IODIE,
  BONDP_BONDING_LEVEL_PORT,
  BONDP_BONDING_LEVEL_MAX
} bondp_bonding_level_t;

typedef struct bondp_set_bonding_mode_in {
  bondp_bonding_mode_t bonding_mode;
  bondp_bonding_level_t bonding_level;
} bondp_set_bonding_mode_in_t;

typedef struct bondp_query_port_in {
  union {
    urma_jfr_t* jfr;
    urma_jetty_t* jetty;
  };
} bondp_query_port_in_t;

typedef struct bondp_query_port_out {
  uint32_t enabled_indices[URMA_UBAGG_DEV_MAX_NUM];
  uint32_t enabled_count;
  uint32_t active_indices[URMA_UBAGG_DEV_MAX_NUM];
  uint32_t active_count;
} bondp_query_port_out_t;

typedef struct bondp_get_jfce_fd_list_in {
  urma_jfce_t* jfce;
} bondp_get_jfce_fd_list_in_t;

typedef struct bondp_get_jfce_fd_list_out {
  int fd_list[URMA_UBAGG_DEV_MAX_NUM];
  uint32_t count;
} bondp_get_jfce_fd_list_out_t;

typedef union bondp_port_id {
  __extension__ struct {
    uint8_t chip_id;
    uint8_t die_id;
    uint8_t port_idx;
    uint8_t reserved;
  };
  uint64_t value;
} bondp_port_id_t;

// Configurations that begin with the ordinary one, so that each call accepts them. The ports that
// follow count only for a device that bonds.

typedef struct bondp_jfs_cfg {
  urma_jfs_cfg_t base;
  const bondp_port_id_t* port_ids;
  uint32_t port_count;
} bondp_jfs_cfg_t;

typedef struct bondp_jfc_cfg {
  urma_jfc_cfg_t base;
  const bondp_port_id_t* port_ids;
  uint32_t port_count;
} bondp_jfc_cfg_t;

typedef struct bondp_jfr_cfg {
  urma_jfr_cfg_t base;
  const bondp_port_id_t* port_ids;
  uint32_t port_count;
} bondp_jfr_cfg_t;

typedef struct bondp_jetty_cfg {
  urma_jetty_cfg_t base;
  const bondp_port_id_t* port_ids;
  uint32_t port_count;
} bondp_jetty_cfg_t;

typedef struct bondp_rjfr {
  urma_rjfr_t base;
  union {
    urma_jfs_t* jfs;
    urma_jetty_t* jetty;
  };
} bondp_rjfr_t;

#ifdef __cplusplus
}
#endif
