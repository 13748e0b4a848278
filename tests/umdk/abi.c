// SPDX-License-Identifier: Apache-2.0
// The sizes and offsets of UMDK's structs on 64-bit machines. It compiles, or does not.
#include <stddef.h>
#include <ub/umdk/urma/urma_provider.h>
#include <ub/umdk/urma/urma_ubagg.h>
#include <ub/umdk/urma/uvs_api.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define OFFSET(type, field, bytes) \
  _Static_assert(offsetof(type, field) == (bytes), #type "." #field)

SIZE(urma_eid_t, 16);
SIZE(urma_device_t, 4184);
SIZE(urma_device_cap_t, 304);
SIZE(urma_device_attr_t, 496);
SIZE(urma_context_t, 104);
OFFSET(urma_context_t, dev, 0);
OFFSET(urma_context_t, ops, 8);
OFFSET(urma_context_t, dev_fd, 16);
OFFSET(urma_context_t, async_fd, 20);
OFFSET(urma_context_t, mutex, 24);
OFFSET(urma_context_t, eid, 64);
OFFSET(urma_context_t, eid_index, 80);
OFFSET(urma_context_t, uasid, 84);
OFFSET(urma_context_t, ref, 88);
OFFSET(urma_context_t, aggr_mode, 96);
SIZE(urma_jfce_t, 24);
SIZE(urma_jfc_t, 248);
SIZE(urma_jfc_cfg_t, 32);
SIZE(urma_jfs_t, 256);
SIZE(urma_jfs_cfg_t, 40);
SIZE(urma_jfr_t, 264);
SIZE(urma_jfr_cfg_t, 48);
SIZE(urma_jetty_t, 344);
SIZE(urma_jetty_cfg_t, 80);
SIZE(urma_jetty_id_t, 24);
SIZE(urma_jetty_grp_t, 280);
SIZE(urma_rjetty_t, 48);
SIZE(urma_target_jetty_t, 64);
SIZE(urma_notifier_t, 24);
SIZE(urma_ubva_t, 28);
SIZE(urma_seg_t, 48);
SIZE(urma_seg_cfg_t, 48);
SIZE(urma_target_seg_t, 88);
SIZE(urma_token_id_t, 40);
SIZE(urma_sge_t, 32);
SIZE(urma_jfs_wr_t, 80);
OFFSET(urma_jfs_wr_t, flag, 4);
OFFSET(urma_jfs_wr_t, tjetty, 8);
OFFSET(urma_jfs_wr_t, user_ctx, 16);
OFFSET(urma_jfs_wr_t, rw, 24);
OFFSET(urma_jfs_wr_t, next, 72);
SIZE(urma_jfr_wr_t, 32);
SIZE(urma_cr_t, 80);
OFFSET(urma_cr_t, user_ctx, 8);
OFFSET(urma_cr_t, opcode, 16);
OFFSET(urma_cr_t, flag, 20);
OFFSET(urma_cr_t, completion_len, 24);
OFFSET(urma_cr_t, local_id, 28);
OFFSET(urma_cr_t, remote_id, 32);
OFFSET(urma_cr_t, imm_data, 56);
OFFSET(urma_cr_t, tpn, 64);
OFFSET(urma_cr_t, user_data, 72);
SIZE(urma_tp_attr_value_t, 128);
SIZE(urma_async_event_t, 32);
SIZE(urma_ops_t, 800);
SIZE(urma_provider_ops_t, 72);
SIZE(bondp_set_bonding_mode_in_t, 8);
SIZE(bondp_query_port_out_t, 168);
SIZE(bondp_get_jfce_fd_list_out_t, 84);
SIZE(bondp_port_id_t, 8);
SIZE(bondp_jfs_cfg_t, 56);
SIZE(bondp_jfc_cfg_t, 48);
SIZE(bondp_jfr_cfg_t, 64);
SIZE(bondp_jetty_cfg_t, 96);
SIZE(bondp_rjfr_t, 48);
SIZE(uvs_path_t, 48);
OFFSET(uvs_path_t, src_eid, 16);
SIZE(uvs_path_set_t, 800);
OFFSET(uvs_path_set_t, path_count, 28);
OFFSET(uvs_path_set_t, paths, 32);
