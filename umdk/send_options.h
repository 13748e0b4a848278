// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "umdk/options.h"

namespace urma::umdk {

// The options of a queue of works, in a JFS or a Jetty: `cfg` and `opt` are where the struct of the
// object has its urma_jfs_cfg_t and its urma_jfs_opt_t.
constexpr std::array<OptionField, 18> send_options(size_t cfg, size_t opt) {
  return {{
      {URMA_JFS_DEPTH, cfg + offsetof(urma_jfs_cfg_t, depth), 4},
      {URMA_JFS_FLAG, cfg + offsetof(urma_jfs_cfg_t, flag), 4},
      {URMA_JFS_TRANS_MODE, cfg + offsetof(urma_jfs_cfg_t, trans_mode), 4},
      {URMA_JFS_PRIORITY, cfg + offsetof(urma_jfs_cfg_t, priority), 1},
      {URMA_JFS_MAX_SGE, cfg + offsetof(urma_jfs_cfg_t, max_sge), 1},
      {URMA_JFS_MAX_RSGE, cfg + offsetof(urma_jfs_cfg_t, max_rsge), 1},
      {URMA_JFS_MAX_INLINE_DATA, cfg + offsetof(urma_jfs_cfg_t, max_inline_data), 4},
      {URMA_JFS_RNR_RETRY, cfg + offsetof(urma_jfs_cfg_t, rnr_retry), 1},
      {URMA_JFS_ERR_TIMEOUT, cfg + offsetof(urma_jfs_cfg_t, err_timeout), 1},
      {URMA_JFS_BIND_JFC, cfg + offsetof(urma_jfs_cfg_t, jfc), 8},
      {URMA_JFS_USER_CTX, cfg + offsetof(urma_jfs_cfg_t, user_ctx), 8},
      {URMA_JFS_SQE_BASE_ADDR, opt + offsetof(urma_jfs_opt_t, urma_jfs_sqe_base_addr), 8,
       URMA_JFS_SQE_BASE_ADDR_MASK},
      {URMA_JFS_ID, opt + offsetof(urma_jfs_opt_t, urma_jfs_id), 4, URMA_JFS_ID_MASK},
      {URMA_JFS_DB_ADDR, opt + offsetof(urma_jfs_opt_t, urma_jfs_db_addr), 8,
       URMA_JFS_DB_ADDR_MASK},
      {URMA_JFS_DB_STATUS, opt + offsetof(urma_jfs_opt_t, urma_jfs_db_status), 1,
       URMA_JFS_DB_STATUS_MASK},
      {URMA_JFS_PI, opt + offsetof(urma_jfs_opt_t, urma_jfs_pi), 2, URMA_JFS_PI_MASK},
      {URMA_JFS_PI_TYPE, opt + offsetof(urma_jfs_opt_t, urma_jfs_pi_type), 2,
       URMA_JFS_PI_TYPE_MASK},
      {URMA_JFS_CI, opt + offsetof(urma_jfs_opt_t, urma_jfs_ci), 2, URMA_JFS_CI_MASK},
  }};
}

}  // namespace urma::umdk
