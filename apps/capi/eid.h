// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "umdk/include/ub/umdk/urma/urma_api.h"

namespace urma::apps::capi {

// Returns an EID as UMDK prints it: eight groups of four digits.
std::string to_text(const urma_eid_t& eid);

bool same(const urma_eid_t& a, const urma_eid_t& b);

// An EID as the value of an option: an IPv6 or IPv4 address, or an IPv4 address as a number.
struct EidText {
  std::optional<urma_eid_t> read(std::string_view word) const;
  std::string valid() const { return "an EID, as 10.0.0.5, or as urma_admin show prints it"; }
};

}  // namespace urma::apps::capi
