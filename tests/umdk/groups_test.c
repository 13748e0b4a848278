// SPDX-License-Identifier: Apache-2.0
// Groups of Jetties: which member receives a message, and which Jetties may be members.
#include <errno.h>
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { member_count = 3, receives = 8 };

// A group in the context of end b, and the members' queues, which complete in b's JFC.
struct group {
  urma_jetty_grp_t* group;
  urma_jfr_t* jfrs[member_count];
  urma_jetty_t* members[member_count];
  urma_target_jetty_t* target;  // for end a
};

static urma_jfr_t* make_jfr(struct end* end, urma_transport_mode_t mode, urma_token_t token) {
  urma_jfr_cfg_t cfg = {
      .depth = receives, .trans_mode = mode, .max_sge = 1, .jfc = end->jfc, .token_value = token};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_jfr_t* const made = urma_create_jfr(end->ctx, &cfg);
  REQUIRE(made != NULL);
  return made;
}

static urma_jetty_cfg_t jetty_cfg(struct end* end, urma_jfr_t* jfr, urma_jetty_grp_t* group) {
  urma_jetty_cfg_t cfg = {
      .jfs_cfg = {
          .depth = 4, .trans_mode = jfr->jfr_cfg.trans_mode, .max_sge = 1, .jfc = end->jfc}};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr;
  cfg.jetty_grp = group;
  return cfg;
}

static urma_jetty_grp_cfg_t group_cfg(urma_jetty_grp_policy_t policy) {
  urma_jetty_grp_cfg_t cfg = {.name = "group", .token_value = secret, .policy = policy};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  return cfg;
}

static urma_target_jetty_t* import_group(struct end* end, const urma_jetty_grp_t* group,
                                         urma_token_t token) {
  urma_rjetty_t described = {.jetty_id = group->jetty_grp_id,
                             .trans_mode = URMA_TM_RM,
                             .policy = group->cfg.policy,
                             .type = URMA_JETTY_GROUP,
                             .tp_type = URMA_RTP};
  described.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  return urma_import_jetty(end->ctx, &described, &token);
}

static struct group make_group(struct ends* ends, urma_jetty_grp_policy_t policy) {
  struct end* b = &ends->b;
  struct group made = {0};
  urma_jetty_grp_cfg_t cfg = group_cfg(policy);
  made.group = urma_create_jetty_grp(b->ctx, &cfg);
  REQUIRE(made.group != NULL);
  CHECK(made.group->urma_ctx == b->ctx && made.group->jetty_cnt == 0);
  for (uint32_t i = 0; i < member_count; ++i) {
    made.jfrs[i] = make_jfr(b, URMA_TM_RM, secret);
    urma_jetty_cfg_t jetty = jetty_cfg(b, made.jfrs[i], made.group);
    made.members[i] = urma_create_jetty(b->ctx, &jetty);
    REQUIRE(made.members[i] != NULL);
    CHECK(made.group->jetty_cnt == i + 1 && made.group->jetty_list[i] == made.members[i]);
  }
  made.target = import_group(&ends->a, made.group, secret);
  REQUIRE(made.target != NULL);
  return made;
}

static void end_group(struct group* group) {
  CHECK(urma_unimport_jetty(group->target) == URMA_SUCCESS);
  for (uint32_t i = 0; i < member_count; ++i) {
    if (group->members[i] != NULL) {
      CHECK(urma_delete_jetty_grp(group->group) == EPERM);
      CHECK(urma_delete_jetty(group->members[i]) == URMA_SUCCESS);
    }
    CHECK(urma_delete_jfr(group->jfrs[i]) == URMA_SUCCESS);
  }
  CHECK(group->group->jetty_cnt == 0);
  CHECK(urma_delete_jetty_grp(group->group) == URMA_SUCCESS);
  CHECK(urma_delete_jetty_grp(group->group) == EINVAL);
}

static void offer(struct ends* ends, struct group* group, uint32_t member, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    urma_sge_t sge = here(&ends->b, 4096 * member + 256 * i, 256);
    urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = member};
    urma_jfr_wr_t* bad = NULL;
    CHECK(urma_post_jfr_wr(group->jfrs[member], &wr, &bad) == URMA_SUCCESS);
  }
}

static urma_cr_status_t send_to(struct ends* ends, struct group* group, uint8_t hint) {
  urma_sge_t from = here(&ends->a, 0, 100);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = group->target};
  wr.send.src = (urma_sg_t){&from, 1};
  wr.send.target_hint = hint;
  return run(&ends->a, &wr).status;
}

// Counts what each member received, of `count` messages.
static void count_arrivals(struct ends* ends, struct group* group, int count, int* by_member) {
  urma_cr_t records[4 * receives] = {{0}};
  memset(by_member, 0, member_count * sizeof *by_member);
  CHECK(collect(ends->b.jfc, records, count) == count);
  for (int i = 0; i < count; ++i) {
    CHECK(records[i].status == URMA_CR_SUCCESS);
    for (uint32_t member = 0; member < member_count; ++member) {
      if (group->members[member] == NULL) continue;
      const bool own = records[i].local_id == group->members[member]->jetty_id.id;
      if (!own) continue;
      ++by_member[member];
      CHECK(records[i].flag.bs.jetty == 1 && records[i].user_ctx == member);
    }
  }
}

static void in_turn(struct ends* ends) {
  struct group group = make_group(ends, URMA_JETTY_GRP_POLICY_RR);
  int came[member_count];
  for (uint32_t i = 0; i < member_count; ++i) offer(ends, &group, i, 4);
  for (int i = 0; i < 6; ++i) CHECK(send_to(ends, &group, 0) == URMA_CR_SUCCESS);
  count_arrivals(ends, &group, 6, came);
  CHECK(came[0] == 2 && came[1] == 2 && came[2] == 2);
  CHECK(urma_delete_jetty(group.members[1]) == URMA_SUCCESS);
  group.members[1] = NULL;
  CHECK(group.group->jetty_cnt == 2 && group.group->jetty_list[1] == group.members[2]);
  for (int i = 0; i < 4; ++i) CHECK(send_to(ends, &group, 0) == URMA_CR_SUCCESS);
  count_arrivals(ends, &group, 4, came);
  CHECK(came[0] == 2 && came[2] == 2);
  end_group(&group);
}

static void by_hint(struct ends* ends) {
  struct group group = make_group(ends, URMA_JETTY_GRP_POLICY_HASH_HINT);
  int came[member_count];
  for (uint32_t i = 0; i < member_count; ++i) offer(ends, &group, i, 8);
  for (uint8_t hint = 0; hint < 5; ++hint) CHECK(send_to(ends, &group, hint) == URMA_CR_SUCCESS);
  urma_sge_t from = here(&ends->a, 0, 8);
  urma_sge_t to = there(&ends->a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE_IMM, .tjetty = group.target};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  wr.rw.target_hint = 5;
  CHECK(run(&ends->a, &wr).status == URMA_CR_SUCCESS);
  count_arrivals(ends, &group, 6, came);
  CHECK(came[0] == 2 && came[1] == 2 && came[2] == 2);
  // A program may write the target itself; its token is 0 then.
  urma_target_jetty_t own = {.urma_ctx = ends->a.ctx,
                             .id = group.group->jetty_grp_id,
                             .trans_mode = URMA_TM_RM,
                             .type = URMA_JETTY_GROUP};
  struct group forged = group;
  forged.target = &own;
  CHECK(send_to(ends, &forged, 0) == URMA_CR_REM_ACCESS_ABORT_ERR);
  end_group(&group);
}

static void wrong_token(struct ends* ends) {
  struct group group = make_group(ends, URMA_JETTY_GRP_POLICY_RR);
  struct group other = group;
  other.target = import_group(&ends->a, group.group, (urma_token_t){secret.token + 1});
  REQUIRE(other.target != NULL);
  offer(ends, &group, 0, 1);
  CHECK(send_to(ends, &other, 0) == URMA_CR_REM_ACCESS_ABORT_ERR);
  CHECK(urma_unimport_jetty(other.target) == URMA_SUCCESS);
  end_group(&group);
}

// Tries to make a Jetty with this configuration, and then checks errno.
static void refused(struct end* end, urma_jetty_cfg_t cfg) {
  errno = 0;
  CHECK(urma_create_jetty(end->ctx, &cfg) == NULL);
  CHECK(errno == EINVAL);
}

static void members(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  struct group group = make_group(ends, URMA_JETTY_GRP_POLICY_RR);
  refused(a, jetty_cfg(a, a->jfr, group.group));  // of another context
  urma_jfr_t* const rc = make_jfr(b, URMA_TM_RC, secret);
  refused(b, jetty_cfg(b, rc, group.group));
  urma_jfr_t* const other = make_jfr(b, URMA_TM_RM, (urma_token_t){secret.token + 1});
  refused(b, jetty_cfg(b, other, group.group));
  CHECK(urma_delete_jfr(rc) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(other) == URMA_SUCCESS);
  urma_jetty_t* more[URMA_MAX_JETTY_IN_JETTY_GRP];
  const uint32_t left = URMA_MAX_JETTY_IN_JETTY_GRP - member_count;
  urma_jetty_cfg_t cfg = jetty_cfg(b, group.jfrs[0], group.group);
  for (uint32_t i = 0; i < left; ++i) {
    more[i] = urma_create_jetty(b->ctx, &cfg);
    REQUIRE(more[i] != NULL);
  }
  errno = 0;
  CHECK(urma_create_jetty(b->ctx, &cfg) == NULL && errno == ENOMEM);
  CHECK(group.group->jetty_cnt == URMA_MAX_JETTY_IN_JETTY_GRP);
  for (uint32_t i = 0; i < left; ++i) CHECK(urma_delete_jetty(more[i]) == URMA_SUCCESS);
  end_group(&group);
  cfg.jetty_grp = group.group;  // deleted
  refused(b, cfg);
}

static void configurations(struct ends* ends) {
  urma_jetty_grp_cfg_t cfg = group_cfg(URMA_JETTY_GRP_POLICY_RR);
  cfg.id = 900;
  urma_jetty_grp_t* const group = urma_create_jetty_grp(ends->b.ctx, &cfg);
  REQUIRE(group != NULL);
  CHECK(group->jetty_grp_id.id == 900 && group->jetty_grp_id.uasid == ends->b.ctx->uasid);
  CHECK(strcmp(group->cfg.name, "group") == 0);
  errno = 0;
  CHECK(urma_create_jetty_grp(ends->b.ctx, &cfg) == NULL && errno != 0);  // the number is in use
  CHECK(urma_delete_context(ends->b.ctx) == EAGAIN);
  CHECK(urma_delete_jetty_grp(group) == URMA_SUCCESS);
  cfg = group_cfg((urma_jetty_grp_policy_t)2);
  errno = 0;
  CHECK(urma_create_jetty_grp(ends->b.ctx, &cfg) == NULL && errno == EINVAL);
  cfg = group_cfg(URMA_JETTY_GRP_POLICY_RR);
  cfg.id = 1 << 16;
  errno = 0;
  CHECK(urma_create_jetty_grp(ends->b.ctx, &cfg) == NULL && errno == EINVAL);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);  // some calls fail on purpose
  for (int i = 0; i < device_count; ++i) {
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    in_turn(&ends);
    by_hint(&ends);
    wrong_token(&ends);
    members(&ends);
    configurations(&ends);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
