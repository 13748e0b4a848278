// SPDX-License-Identifier: Apache-2.0
#include "umdk/segment.h"

#include "umdk/pool.h"

namespace urma::umdk {
namespace {

urma_seg_t described(const Context& context, const urma_seg_cfg_t& cfg) {
  urma_seg_t seg{};
  seg.ubva = {context.eid, context.uasid, cfg.va};
  seg.len = cfg.len;
  seg.attr.bs.token_policy = cfg.flag.bs.token_policy & 7;
  seg.attr.bs.cacheable = cfg.flag.bs.cacheable & 1;
  seg.attr.bs.access = cfg.flag.bs.access & 0x3f;
  seg.attr.bs.non_pin = cfg.flag.bs.non_pin & 1;
  seg.attr.bs.user_token_id = cfg.flag.bs.token_id_valid & 1;
  return seg;
}

}  // namespace

Rights rights_of(uint32_t access) {
  Rights rights = Rights::local_only;
  if ((access & URMA_ACCESS_READ) != 0) rights = rights | Rights::read;
  if ((access & URMA_ACCESS_WRITE) != 0) rights = rights | Rights::write;
  if ((access & URMA_ACCESS_ATOMIC) != 0) rights = rights | Rights::atomic;
  return rights;
}

Token::Token(Context& context, urma_token_id_flag_t how) : urma_token_id_t{} {
  urma_ctx = &context;
  token_id = URMA_SEG_TOKEN_ID_INVALID;
  ref.atomic_cnt = 1;
  flag = how;
  context.hold();
}

Token::~Token() { context().let_go(); }

TargetSegment::TargetSegment(Context& context, const urma_seg_t& what) : urma_target_seg_t{} {
  seg = what;
  urma_ctx = &context;
  context.hold();
}

TargetSegment::~TargetSegment() { context().let_go(); }

Result<TargetSegment*> register_segment(Context& context, const urma_seg_cfg_t& cfg) {
  Token* const token = cfg.flag.bs.token_id_valid != 0
                           ? static_cast<Token*>(cfg.token_id)
                           : Pool<Token>::make(context, urma_token_id_flag_t{});
  const std::lock_guard held(token->mutex);
  SegmentOptions options{.rights = rights_of(cfg.flag.bs.access)};
  if (!token->segments.empty()) {
    options.with = &*token->segments.front()->own;
  } else if (cfg.flag.bs.token_policy == URMA_TOKEN_NONE) {
    options.policy = TokenPolicy::none;
  } else {
    options.token = TokenValue(cfg.token_value.token);
  }
  const std::span memory(reinterpret_cast<std::byte*>(cfg.va), cfg.len);
  auto made = context.device.register_memory(memory, options);
  if (!made) {
    if (cfg.flag.bs.token_id_valid == 0) Pool<Token>::destroy(token);
    return made.error();
  }
  auto* const segment = Pool<TargetSegment>::make(context, described(context, cfg));
  segment->remote = made->local();
  segment->own.emplace(std::move(*made));
  segment->user_ctx = cfg.user_ctx;
  segment->mva = cfg.va;
  segment->token_id = token;
  token->segments.push_back(segment);
  token->ref.atomic_cnt.fetch_add(1);
  token->token_id = number(segment->remote.token_id) << token_id_shift;
  segment->seg.token_id = token->token_id;
  return segment;
}

Result<void> unregister_segment(TargetSegment& segment) {
  auto* const token = static_cast<Token*>(segment.token_id);
  const bool implied = segment.seg.attr.bs.user_token_id == 0;
  {
    const std::lock_guard held(token->mutex);
    if (auto ended = segment.own->unregister(); !ended) return ended;
    std::erase(token->segments, &segment);
    token->ref.atomic_cnt.fetch_sub(1);
  }
  Pool<TargetSegment>::destroy(&segment);
  if (implied) Pool<Token>::destroy(token);
  return {};
}

Result<TargetSegment*> import_segment(Context& context, const urma_seg_t& described_,
                                      uint32_t token) {
  auto peer = context.peer_at({described_.ubva.eid, described_.ubva.uasid});
  if (!peer) return peer.error();
  auto* const segment = Pool<TargetSegment>::make(context, described_);
  segment->remote = {.peer = *peer,
                     .address = described_.ubva.va,
                     .bytes = described_.len,
                     .token_id = TokenId(described_.token_id >> token_id_shift),
                     .token = TokenValue(token),
                     .rights = Rights::read | Rights::write | Rights::atomic,  // its owner knows
                     .atomics = AtomicDomain::processor};
  return segment;
}

}  // namespace urma::umdk
