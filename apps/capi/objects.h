// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "umdk/include/ub/umdk/urma/urma_api.h"

namespace urma::apps::capi {

// Deletes an object by a call of the C API.
template <auto Call>
struct Deletes {
  template <class Object>
  void operator()(Object* object) const {
    Call(object);
  }
};

// Owners. Declare them in the order in which the objects are made.
using OwnContext = std::unique_ptr<urma_context_t, Deletes<urma_delete_context>>;
using OwnSegment = std::unique_ptr<urma_target_seg_t, Deletes<urma_unregister_seg>>;
using OwnJfce = std::unique_ptr<urma_jfce_t, Deletes<urma_delete_jfce>>;
using OwnJfc = std::unique_ptr<urma_jfc_t, Deletes<urma_delete_jfc>>;
using OwnJfr = std::unique_ptr<urma_jfr_t, Deletes<urma_delete_jfr>>;
using OwnJetty = std::unique_ptr<urma_jetty_t, Deletes<urma_delete_jetty>>;
using OwnTarget = std::unique_ptr<urma_target_jetty_t, Deletes<urma_unimport_jetty>>;

}  // namespace urma::apps::capi
