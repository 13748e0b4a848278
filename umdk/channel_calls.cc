// SPDX-License-Identifier: Apache-2.0
// Calls about channels and addresses, most of which configure hardware.
#include <cstdlib>

#include "umdk/calls.h"
#include "umdk/context.h"
#include "umdk/jetty.h"

using namespace urma::umdk;

namespace {

urma_status_t not_supported(const char* call) {
  return refuse(URMA_ENOPERM, call,
                "the library makes channels by itself, and they have no such attributes. Fix: see "
                "docs/porting-from-umdk.md");
}

urma_status_t not_supported(const char* call, const urma_context_t* ctx) {
  if (find<Context>(const_cast<urma_context_t*>(ctx)) == nullptr) return refuse_null(call, "ctx");
  return not_supported(call);
}

}  // namespace

extern "C" {

// The library has one channel to each device, which its address names.
urma_status_t urma_get_tp_list(urma_context_t* ctx, urma_get_tp_cfg_t* cfg, uint32_t* tp_cnt,
                               urma_tp_info_t* tp_list) {
  if (find<Context>(ctx) == nullptr || cfg == nullptr || tp_cnt == nullptr || *tp_cnt == 0 ||
      tp_list == nullptr) {
    return refuse_null(__func__, "ctx, cfg, tp_cnt or tp_list");
  }
  *tp_cnt = 1;
  tp_list[0].tp_handle = cfg->peer_eid.in6.interface_id | 1;
  return URMA_SUCCESS;
}

urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out) {
  if (in == nullptr || out == nullptr) return refuse_null(__func__, "in or out");
  return not_supported(__func__, ctx);
}

int urma_get_tpn(urma_jetty_t* jetty) {
  if (find<Jetty>(jetty) == nullptr) return -refuse_null(__func__, "jetty");
  return -not_supported(__func__);
}

int urma_modify_tp(urma_context_t* ctx, uint32_t, urma_tp_cfg_t*, urma_tp_attr_t*,
                   urma_tp_attr_mask_t) {
  return not_supported(__func__, ctx);
}

urma_status_t urma_set_tp_attr(const urma_context_t* ctx, const uint64_t, const uint8_t,
                               const uint32_t, const urma_tp_attr_value_t*) {
  return not_supported(__func__, ctx);
}

urma_status_t urma_get_tp_attr(const urma_context_t* ctx, const uint64_t, uint8_t*, uint32_t*,
                               urma_tp_attr_value_t*) {
  return not_supported(__func__, ctx);
}

urma_status_t urma_get_smac(const urma_context_t* ctx, uint8_t*) {
  return not_supported(__func__, ctx);
}

urma_status_t urma_get_dmac(const urma_context_t* ctx, const urma_net_addr_t*, uint8_t*) {
  return not_supported(__func__, ctx);
}

// ---- addresses

urma_status_t urma_get_eid_by_ip(const urma_context_t* ctx, const urma_net_addr_t* net_addr,
                                 urma_eid_t* eid) {
  if (find<Context>(const_cast<urma_context_t*>(ctx)) == nullptr || net_addr == nullptr ||
      eid == nullptr) {
    return refuse_null(__func__, "ctx, net_addr or eid");
  }
  if (net_addr->sin_family == AF_INET) {
    urma_u32_to_eid(ntohl(net_addr->in4.s_addr), eid);
    return URMA_SUCCESS;
  }
  if (net_addr->sin_family == AF_INET6) {
    std::memcpy(eid->raw, &net_addr->in6, sizeof eid->raw);
    return URMA_SUCCESS;
  }
  return refuse(URMA_EINVAL, __func__, "sin_family is %d. Fix: choose AF_INET or AF_INET6",
                net_addr->sin_family);
}

urma_status_t urma_get_ip_by_eid(const urma_context_t* ctx, const urma_eid_t* eid,
                                 urma_net_addr_t* net_addr) {
  if (find<Context>(const_cast<urma_context_t*>(ctx)) == nullptr || net_addr == nullptr ||
      eid == nullptr) {
    return refuse_null(__func__, "ctx, eid or net_addr");
  }
  if (urma::in_window(to_address(*eid))) {
    return refuse(URMA_EINVAL, __func__,
                  "an EID of shared memory is not an IP address. Fix: use a device of a network");
  }
  *net_addr = {};
  if (urma::Endpoint{to_address(*eid), 0}.is_ipv4()) {
    net_addr->sin_family = AF_INET;
    net_addr->in4.s_addr = eid->in4.addr;
    net_addr->prefix_len = 32;
  } else {
    net_addr->sin_family = AF_INET6;
    std::memcpy(&net_addr->in6, eid->raw, sizeof eid->raw);
    net_addr->prefix_len = 128;
  }
  return URMA_SUCCESS;
}

urma_net_addr_info_t* urma_get_net_addr_list(urma_context_t* ctx, uint32_t* cnt) {
  return make("urma_get_net_addr_list", [&]() -> urma_net_addr_info_t* {
    if (find<Context>(ctx) == nullptr || cnt == nullptr) {
      return null(refuse_null("urma_get_net_addr_list", "ctx or cnt"));
    }
    *cnt = 0;
    urma_net_addr_t address{};
    if (const auto status = urma_get_ip_by_eid(ctx, &ctx->eid, &address)) return null(status);
    auto* const list =
        static_cast<urma_net_addr_info_t*>(std::calloc(1, sizeof(urma_net_addr_info_t)));
    if (list == nullptr) throw std::bad_alloc();
    list[0].netaddr = address;
    *cnt = 1;
    return list;
  });
}

void urma_free_net_addr_list(urma_net_addr_info_t* net_addr_list) { std::free(net_addr_list); }

}  // extern "C"
