// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace urma::drivers::verbs {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};

// Handles of libibverbs, each of which must be destroyed before those that it was made with.
using Context = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using Memory = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using AddressHandle = std::unique_ptr<ibv_ah, Destroy<ibv_destroy_ah>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>>;

}  // namespace urma::drivers::verbs
