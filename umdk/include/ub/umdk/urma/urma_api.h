// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of the URMA C API (version 0.9), over the engines of liburma.
//
// Statuses are positive: 0, an errno, or URMA_FAIL. A call that returns a pointer returns null on
// an error and sets errno; poll, wait and flush return a negative number. Each error is written to
// the log with its reason (urma_register_log_func). An argument that is null, deleted, or of
// another context is EINVAL.
//
// Any thread may call any function at any time, with two exceptions: no other thread uses an object
// while it is deleted; and one thread at a time posts to, or polls, a queue
// whose flag lock_free is set. No thread needs to call the library for peers to reach memory: a
// thread of each context answers them. docs/porting-from-umdk.md says how this library differs from
// UMDK.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// ---- Devices and contexts

// Begins. `conf` may be null. EEXIST if that was done.
urma_status_t urma_init(urma_init_attr_t* conf);
// Ends what urma_init began. Contexts stay open.
urma_status_t urma_uninit(void);
// Returns the devices, which urma_free_device_list frees, and their number. The environment
// variable URMA_DEVICES names them; without it there are cxl0 (shared memory) and one for each
// network interface. errno: EINVAL, ENODEV if there are none.
urma_device_t** urma_get_device_list(int* num_devices);
// Frees the array, not the devices.
void urma_free_device_list(urma_device_t** device_list);
// Returns the EIDs of a device, which urma_free_eid_list frees, and their number. errno: EINVAL,
// EIO if the device cannot be opened, ENOMEM.
urma_eid_info_t* urma_get_eid_list(urma_device_t* dev, uint32_t* cnt);
void urma_free_eid_list(urma_eid_info_t* eid_list);
// Finds a device by its name. A device string ("udp:10.0.0.5") is a name, too. errno: EINVAL,
// ENODEV.
urma_device_t* urma_get_device_by_name(char* dev_name);
// Finds the device that has an EID. errno: ENODEV.
urma_device_t* urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type);
// Writes what a device can do. EINVAL.
urma_status_t urma_query_device(urma_device_t* dev, urma_device_attr_t* dev_attr);
// Opens a device at one of its EIDs. errno: EINVAL, EIO.
urma_context_t* urma_create_context(urma_device_t* dev, uint32_t eid_index);
// Closes a context. EAGAIN while it has objects.
urma_status_t urma_delete_context(urma_context_t* ctx);
// Only for devices of several ports, of which there are none: EINVAL.
urma_status_t urma_set_context_opt(urma_context_t* ctx, urma_opt_name_t opt_name,
                                   const void* opt_value, size_t opt_len);
// Writes 0: each context has a uasid of its own. EINVAL.
urma_status_t urma_get_uasid(uint32_t* uasid);

// ---- Completion queues and event channels

// errno: EINVAL, ENOMEM.
urma_jfce_t* urma_create_jfce(urma_context_t* ctx);
// FAIL while JFCs are attached.
urma_status_t urma_delete_jfce(urma_jfce_t* jfce);
// errno: EINVAL (a depth outside of the limits), ENOMEM.
urma_jfc_t* urma_create_jfc(urma_context_t* ctx, urma_jfc_cfg_t* jfc_cfg);
// Moderation is kept, and has no effect. EINVAL.
urma_status_t urma_modify_jfc(urma_jfc_t* jfc, urma_jfc_attr_t* attr);
// EINVAL while queues complete there.
urma_status_t urma_delete_jfc(urma_jfc_t* jfc);
// Deletes several; the first that fails is *bad_jfc.
urma_status_t urma_delete_jfc_batch(urma_jfc_t** jfc_arr, int jfc_num, urma_jfc_t** bad_jfc);
// Makes an object in two steps: alloc, set options, active. After deactive it can be freed, or its
// options set and active called again. EINVAL if the object is in the other state. The other three
// kinds of objects have the same calls.
urma_status_t urma_alloc_jfc(urma_context_t* urma_ctx, urma_jfc_cfg_t* cfg, urma_jfc_t** jfc);
urma_status_t urma_set_jfc_opt(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_active_jfc(urma_jfc_t* jfc);
urma_status_t urma_get_jfc_opt(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_deactive_jfc(urma_jfc_t* jfc);
urma_status_t urma_free_jfc(urma_jfc_t* jfc);
// Writes up to `cr_cnt` completion records and returns their number, or -1. Never blocks.
int urma_poll_jfc(urma_jfc_t* jfc, int cr_cnt, urma_cr_t* cr);
// Asks for one event of the JFC's event channel: when it has a record to poll, or immediately if it
// has one. With `solicited_only`, solicited arrivals and failures alone count from then on. EINVAL.
urma_status_t urma_rearm_jfc(urma_jfc_t* jfc, bool solicited_only);
// Waits for events of armed JFCs, writes up to `jfc_cnt` of these JFCs to `jfc` and returns their
// number; 0 after `time_out` ms (-1: never), -1 on an error.
int urma_wait_jfc(urma_jfce_t* jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t* jfc[]);
// Acknowledges events that urma_wait_jfc reported.
void urma_ack_jfc(urma_jfc_t* jfc[], uint32_t nevents[], uint32_t jfc_cnt);

// ---- Queues of works

// An order_type of URMA_DEF_ORDER is replaced in `jfs_cfg` by what it means. errno: EINVAL, ENOMEM.
urma_jfs_t* urma_create_jfs(urma_context_t* ctx, urma_jfs_cfg_t* jfs_cfg);
// The states change from RESET to READY, from READY to SUSPENDED or ERROR, from SUSPENDED to ERROR,
// and from ERROR to RESET. The state that a queue is in has no effect; others are EINVAL.
// SUSPENDED and ERROR end all works as WR_FLUSH_ERR; then one record of the status WR_SUSPEND_DONE
// or WR_FLUSH_ERR_DONE follows. Works that are posted in these states end at once, and those in
// RESET are EINVAL. READY lets works run again. With the flag error_suspend, a work that fails sets
// the state SUSPENDED. Messages to a Jetty arrive in READY and SUSPENDED. EINVAL.
urma_status_t urma_modify_jfs(urma_jfs_t* jfs, urma_jfs_attr_t* attr);
urma_status_t urma_query_jfs(urma_jfs_t* jfs, urma_jfs_cfg_t* cfg, urma_jfs_attr_t* attr);
urma_status_t urma_delete_jfs(urma_jfs_t* jfs);
urma_status_t urma_delete_jfs_batch(urma_jfs_t** jfs_arr, int jfs_num, urma_jfs_t** bad_jfs);
// Returns 0: the works of a queue in the error state complete in its JFC. -EINVAL if `cr_cnt` is
// not 1 to the depth of the queue.
int urma_flush_jfs(urma_jfs_t* jfs, int cr_cnt, urma_cr_t* cr);
urma_status_t urma_alloc_jfs(urma_context_t* urma_ctx, urma_jfs_cfg_t* cfg, urma_jfs_t** jfs);
urma_status_t urma_set_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_active_jfs(urma_jfs_t* jfs);
urma_status_t urma_get_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_deactive_jfs(urma_jfs_t* jfs);
urma_status_t urma_free_jfs(urma_jfs_t* jfs);
// Posts a list of works. On an error *bad_wr is the first that was not posted; earlier ones were.
// ENOMEM if the queue is full: poll, then post the rest.
urma_status_t urma_post_jfs_wr(urma_jfs_t* jfs, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr);
// Post one work each.
urma_status_t urma_write(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr,
                         urma_target_seg_t* dst_tseg, urma_target_seg_t* src_tseg, uint64_t dst,
                         uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx);
urma_status_t urma_read(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr,
                        urma_target_seg_t* dst_tseg, urma_target_seg_t* src_tseg, uint64_t dst,
                        uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx);
urma_status_t urma_send(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr,
                        urma_target_seg_t* src_tseg, uint64_t src, uint32_t len,
                        urma_jfs_wr_flag_t flag, uint64_t user_ctx);

// ---- Queues of receives

// errno: EINVAL, EEXIST (another object has that number), ENOMEM.
urma_jfr_t* urma_create_jfr(urma_context_t* ctx, urma_jfr_cfg_t* jfr_cfg);
// The states change as those of a JFS, without SUSPENDED. ERROR ends all receives as WR_FLUSH_ERR,
// and those that are posted in this state. Receives that are posted in RESET are EINVAL. EINVAL.
urma_status_t urma_modify_jfr(urma_jfr_t* jfr, urma_jfr_attr_t* attr);
urma_status_t urma_query_jfr(urma_jfr_t* jfr, urma_jfr_cfg_t* cfg, urma_jfr_attr_t* attr);
// EINVAL while Jetties use it.
urma_status_t urma_delete_jfr(urma_jfr_t* jfr);
urma_status_t urma_delete_jfr_batch(urma_jfr_t** jfr_arr, int jfr_num, urma_jfr_t** bad_jfr);
// Makes a target of what the owner told: an EID, a uasid, which may be 0, and a number. It sends
// nothing, so an owner that does not exist shows when a work is posted. errno: EINVAL, ENOMEM.
urma_target_jetty_t* urma_import_jfr(urma_context_t* ctx, urma_rjfr_t* rjfr,
                                     urma_token_t* token_value);
urma_target_jetty_t* urma_import_jfr_ex(urma_context_t* ctx, urma_rjfr_t* rjfr,
                                        urma_token_t* token_value, urma_import_jfr_ex_cfg_t* cfg);
urma_status_t urma_unimport_jfr(urma_target_jetty_t* target_jfr);
// These have no effect on UB, and succeed.
urma_status_t urma_advise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr);
urma_status_t urma_advise_jfr_async(urma_jfs_t* jfs, urma_target_jetty_t* tjfr,
                                    urma_advise_async_cb_func cb_fun, void* cb_arg);
urma_status_t urma_unadvise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr);
urma_status_t urma_alloc_jfr(urma_context_t* urma_ctx, urma_jfr_cfg_t* cfg, urma_jfr_t** jfr);
urma_status_t urma_set_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_active_jfr(urma_jfr_t* jfr);
urma_status_t urma_get_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_deactive_jfr(urma_jfr_t* jfr);
urma_status_t urma_free_jfr(urma_jfr_t* jfr);
// Posts a list of receives. Each message takes one, and so does each write with an immediate, which
// stores nothing in it. ENOMEM if the queue is full.
urma_status_t urma_post_jfr_wr(urma_jfr_t* jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr);
// Posts one receive.
urma_status_t urma_recv(urma_jfr_t* jfr, urma_target_seg_t* recv_tseg, uint64_t buf, uint32_t len,
                        uint64_t user_ctx);

// ---- Jetties

// errno: EINVAL, EEXIST (another object has that number), EPERM, ENOMEM.
urma_jetty_t* urma_create_jetty(urma_context_t* ctx, urma_jetty_cfg_t* jetty_cfg);
// As urma_modify_jfs.
urma_status_t urma_modify_jetty(urma_jetty_t* jetty, urma_jetty_attr_t* attr);
urma_status_t urma_query_jetty(urma_jetty_t* jetty, urma_jetty_cfg_t* cfg, urma_jetty_attr_t* attr);
// EPERM while it is bound.
urma_status_t urma_delete_jetty(urma_jetty_t* jetty);
urma_status_t urma_delete_jetty_batch(urma_jetty_t** jetty_arr, int jetty_num,
                                      urma_jetty_t** bad_jetty);
// As urma_import_jfr.
urma_target_jetty_t* urma_import_jetty(urma_context_t* ctx, urma_rjetty_t* rjetty,
                                       urma_token_t* token_value);
urma_target_jetty_t* urma_import_jetty_ex(urma_context_t* ctx, urma_rjetty_t* rjetty,
                                          urma_token_t* token_value,
                                          urma_import_jetty_ex_cfg_t* cfg);
urma_status_t urma_unimport_jetty(urma_target_jetty_t* tjetty);
urma_status_t urma_advise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);
urma_status_t urma_unadvise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);
// Binds a Jetty of URMA_TM_RC to a target, to which all its works go then, whatever they name.
// EINVAL, EEXIST if it is bound to another one, EPERM if the modes or the orders of the two differ.
urma_status_t urma_bind_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);
urma_status_t urma_bind_jetty_ex(urma_jetty_t* jetty, urma_target_jetty_t* tjetty,
                                 urma_bind_jetty_ex_cfg_t* cfg);
urma_status_t urma_unbind_jetty(urma_jetty_t* jetty);
// As urma_flush_jfs.
int urma_flush_jetty(urma_jetty_t* jetty, int cr_cnt, urma_cr_t* cr);
// Returns what a peer needs to import the Jetty, in memory that urma_put_rjetty frees.
urma_status_t urma_get_rjetty(urma_jetty_t* jetty, urma_rjetty_t** rjetty, uint32_t* length);
void urma_put_rjetty(urma_rjetty_t* rjetty);
urma_status_t urma_alloc_jetty(urma_context_t* urma_ctx, urma_jetty_cfg_t* cfg,
                               urma_jetty_t** jetty);
urma_status_t urma_set_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_active_jetty(urma_jetty_t* jetty);
urma_status_t urma_get_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len);
urma_status_t urma_deactive_jetty(urma_jetty_t* jetty);
urma_status_t urma_free_jetty(urma_jetty_t* jetty);
urma_status_t urma_post_jetty_send_wr(urma_jetty_t* jetty, urma_jfs_wr_t* wr,
                                      urma_jfs_wr_t** bad_wr);
urma_status_t urma_post_jetty_recv_wr(urma_jetty_t* jetty, urma_jfr_wr_t* wr,
                                      urma_jfr_wr_t** bad_wr);

// ---- Imports and bindings that report their result later

// errno: EINVAL, ENOMEM.
urma_notifier_t* urma_create_notifier(urma_context_t* ctx);
urma_status_t urma_delete_notifier(urma_notifier_t* notifier);
urma_target_jetty_t* urma_import_jetty_async(urma_notifier_t* notifier, const urma_rjetty_t* rjetty,
                                             const urma_token_t* token_value, uint64_t user_ctx,
                                             int timeout);
urma_status_t urma_unimport_jetty_async(urma_target_jetty_t* tjetty);
urma_status_t urma_bind_jetty_async(urma_notifier_t* notifier, urma_jetty_t* jetty,
                                    urma_target_jetty_t* tjetty, uint64_t user_ctx, int timeout);
urma_status_t urma_unbind_jetty_async(urma_jetty_t* jetty);
// Writes up to `cnt` results and returns their number; 0 after `timeout` ms, -1 on an error.
int urma_wait_notify(urma_notifier_t* notifier, uint32_t cnt, urma_notify_t* notify, int timeout);
urma_status_t urma_ack_notify(urma_context_t* ctx, uint32_t cnt, urma_notify_t* notify);

// ---- Groups of Jetties, which peers address as one

// Makes a group without members. A Jetty of URMA_TM_RM whose JFR has the group's token joins it by
// `jetty_grp` of its configuration, and leaves it when it is deleted; a group has up to
// `max_jetty_in_jetty_grp` members. Each message to the group is received by one of them:
// URMA_JETTY_GRP_POLICY_RR: by each in turn, of those with receives; _HASH_HINT: by the member
// number `target_hint` modulo the number of members. A peer imports it as URMA_JETTY_GROUP, by
// `jetty_grp_id`. errno: EINVAL, ENOMEM.
urma_jetty_grp_t* urma_create_jetty_grp(urma_context_t* ctx, urma_jetty_grp_cfg_t* cfg);
// EPERM while the group has members.
urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t* jetty_grp);

// ---- Segments

// Makes a TokenID for segments that are registered later. errno: EINVAL, ENOMEM.
urma_token_id_t* urma_alloc_token_id(urma_context_t* ctx);
urma_token_id_t* urma_alloc_token_id_ex(urma_context_t* ctx, urma_token_id_flag_t flag);
// EINVAL while segments have it.
urma_status_t urma_free_token_id(urma_token_id_t* token_id);
// Registers memory of the caller, which stays mapped until it is unregistered. With the variable
// URMA_SEGMENTS=window, whole pages of memory that no other thread can store to are moved into the
// window of a cxl: device, at the same address (docs/porting-from-umdk.md). errno: EINVAL, ENOMEM.
urma_target_seg_t* urma_register_seg(urma_context_t* ctx, urma_seg_cfg_t* seg_cfg);
// When it returns 0, no peer reads or writes the memory any longer. EAGAIN if that could not be
// ensured: call it again.
urma_status_t urma_unregister_seg(urma_target_seg_t* target_seg);
// Makes a target of what the owner told. As urma_import_jfr, it sends nothing.
urma_target_seg_t* urma_import_seg(urma_context_t* ctx, urma_seg_t* seg, urma_token_t* token_value,
                                   uint64_t addr, urma_import_seg_flag_t flag);
urma_status_t urma_unimport_seg(urma_target_seg_t* tseg);
// Returns what a peer needs to import the segment, in memory that urma_put_seg_ctx frees.
urma_status_t urma_get_seg_ctx(urma_target_seg_t* tseg, urma_seg_t** seg, uint32_t* size);
void urma_put_seg_ctx(urma_seg_t* seg);

// ---- Events

// Takes one event; waits for one unless `async_fd` is non-blocking (then EAGAIN). EINVAL.
urma_status_t urma_get_async_event(urma_context_t* ctx, urma_async_event_t* event);
void urma_ack_async_event(urma_async_event_t* event);

// ---- The log. The default is stderr, from the level WARNING. Each message ends with a newline

urma_status_t urma_register_log_func(urma_log_cb_t func);
urma_status_t urma_register_loc_log_func(urma_loc_log_cb func);
urma_status_t urma_unregister_log_func(void);
urma_vlog_level_t urma_log_get_level(void);
void urma_log_set_level(urma_vlog_level_t level);
// A text in front of each message of the calling thread.
const char* urma_log_get_thread_tag(void);
void urma_log_set_thread_tag(const char* tag);

// ---- Channels, which this library makes by itself

// Writes one handle of the channel to a peer, whichever modes are asked for. EINVAL.
urma_status_t urma_get_tp_list(urma_context_t* ctx, urma_get_tp_cfg_t* cfg, uint32_t* tp_cnt,
                               urma_tp_info_t* tp_list);
// Not supported: EPERM, and for get_tpn -EPERM.
urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out);
int urma_get_tpn(urma_jetty_t* jetty);
int urma_modify_tp(urma_context_t* ctx, uint32_t tpn, urma_tp_cfg_t* cfg, urma_tp_attr_t* attr,
                   urma_tp_attr_mask_t mask);
urma_status_t urma_set_tp_attr(const urma_context_t* ctx, const uint64_t tp_handle,
                               const uint8_t tp_attr_cnt, const uint32_t tp_attr_bitmap,
                               const urma_tp_attr_value_t* tp_attr);
urma_status_t urma_get_tp_attr(const urma_context_t* ctx, const uint64_t tp_handle,
                               uint8_t* tp_attr_cnt, uint32_t* tp_attr_bitmap,
                               urma_tp_attr_value_t* tp_attr);
urma_status_t urma_get_smac(const urma_context_t* ctx, uint8_t* mac);
urma_status_t urma_get_dmac(const urma_context_t* ctx, const urma_net_addr_t* net_addr,
                            uint8_t* mac);
// The addresses of a context: that of its EID, if it is an IP address. errno: EINVAL, ENOMEM.
urma_net_addr_info_t* urma_get_net_addr_list(urma_context_t* ctx, uint32_t* cnt);
void urma_free_net_addr_list(urma_net_addr_info_t* net_addr_list);
// An EID is an IP address, so these only copy it. EINVAL if it is none.
urma_status_t urma_get_eid_by_ip(const urma_context_t* ctx, const urma_net_addr_t* net_addr,
                                 urma_eid_t* eid);
urma_status_t urma_get_ip_by_eid(const urma_context_t* ctx, const urma_eid_t* eid,
                                 urma_net_addr_t* net_addr);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
