// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "umdk/calls.h"
#include "umdk/checks.h"
#include "umdk/segment.h"

using namespace urma::umdk;

extern "C" {

urma_token_id_t* urma_alloc_token_id(urma_context_t* ctx) {
  return urma_alloc_token_id_ex(ctx, urma_token_id_flag_t{});
}

urma_token_id_t* urma_alloc_token_id_ex(urma_context_t* ctx, urma_token_id_flag_t flag) {
  return make("urma_alloc_token_id", [&]() -> urma_token_id_t* {
    Context* const context = context_of("urma_alloc_token_id", ctx);
    return context != nullptr ? Pool<Token>::make(*context, flag) : nullptr;
  });
}

urma_status_t urma_free_token_id(urma_token_id_t* token_id) {
  return end_object<Token>(__func__, "token_id", token_id, [](Token& token) {
    if (token.is_used()) {
      return refuse(URMA_EINVAL, "urma_free_token_id",
                    "segments have it. Fix: unregister these first");
    }
    Pool<Token>::destroy(&token);
    return URMA_SUCCESS;
  });
}

urma_target_seg_t* urma_register_seg(urma_context_t* ctx, urma_seg_cfg_t* seg_cfg) {
  return make("urma_register_seg", [&]() -> urma_target_seg_t* {
    Context* const context = context_of("urma_register_seg", ctx);
    if (context == nullptr) return nullptr;
    if (seg_cfg == nullptr) return null(refuse_null("urma_register_seg", "seg_cfg"));
    if (const auto status = check("urma_register_seg", *seg_cfg, *context)) return null(status);
    const auto segment = register_segment(*context, *seg_cfg);
    return segment ? *segment : null(refuse("urma_register_seg", segment.error()));
  });
}

urma_status_t urma_unregister_seg(urma_target_seg_t* target_seg) {
  return end_object<TargetSegment>(__func__, "target_seg", target_seg, [](TargetSegment& segment) {
    if (segment.is_imported()) {
      return refuse(URMA_EINVAL, "urma_unregister_seg",
                    "the segment was imported. Fix: call urma_unimport_seg");
    }
    const auto ended = unregister_segment(segment);
    return ended ? URMA_SUCCESS : refuse("urma_unregister_seg", ended.error());
  });
}

urma_target_seg_t* urma_import_seg(urma_context_t* ctx, urma_seg_t* seg, urma_token_t* token_value,
                                   uint64_t addr, urma_import_seg_flag_t flag) {
  return make("urma_import_seg", [&]() -> urma_target_seg_t* {
    Context* const context = context_of("urma_import_seg", ctx);
    if (context == nullptr) return nullptr;
    if (seg == nullptr) return null(refuse_null("urma_import_seg", "seg"));
    const uint32_t policy = seg->attr.bs.token_policy;
    if (const auto status = check_policy("urma_import_seg", policy)) return null(status);
    const bool checked = policy != URMA_TOKEN_NONE;
    if (checked && token_value == nullptr) {
      return null(refuse_null("urma_import_seg", "token_value"));
    }
    if (flag.bs.mapping != URMA_SEG_NOMAP) {
      return null(refuse(URMA_EINVAL, "urma_import_seg",
                         "remote segments are not mapped (URMA_SEG_MAPPED). Fix: post works"));
    }
    const auto segment =
        import_segment(*context, *seg, token_value != nullptr ? token_value->token : 0);
    if (!segment) return null(refuse("urma_import_seg", segment.error()));
    (*segment)->mva = addr;
    return *segment;
  });
}

urma_status_t urma_unimport_seg(urma_target_seg_t* tseg) {
  return end_object<TargetSegment>(__func__, "tseg", tseg, [](TargetSegment& segment) {
    if (!segment.is_imported()) {
      return refuse(URMA_EINVAL, "urma_unimport_seg",
                    "the segment was registered here. Fix: call urma_unregister_seg");
    }
    Pool<TargetSegment>::destroy(&segment);
    return URMA_SUCCESS;
  });
}

urma_status_t urma_get_seg_ctx(urma_target_seg_t* tseg, urma_seg_t** seg, uint32_t* size) {
  if (seg == nullptr || size == nullptr) return refuse_null(__func__, "seg or size");
  return with<TargetSegment>(__func__, "tseg", tseg, [&](TargetSegment& segment) {
    auto* const made = static_cast<urma_seg_t*>(std::calloc(1, sizeof(urma_seg_t)));
    if (made == nullptr) throw std::bad_alloc();
    *made = segment.seg;
    *seg = made;
    *size = sizeof(urma_seg_t);
    return URMA_SUCCESS;
  });
}

void urma_put_seg_ctx(urma_seg_t* seg) { std::free(seg); }

}  // extern "C"
