// SPDX-License-Identifier: Apache-2.0
#include "apps/capi/eid.h"

#include <array>
#include <cstdio>
#include <cstring>

namespace urma::apps::capi {

std::string to_text(const urma_eid_t& eid) {
  std::array<char, URMA_EID_STR_LEN + 1> text;
  std::snprintf(text.data(), text.size(), EID_FMT, EID_ARGS(eid));
  return text.data();
}

bool same(const urma_eid_t& a, const urma_eid_t& b) {
  return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0;
}

std::optional<urma_eid_t> EidText::read(std::string_view word) const {
  urma_eid_t eid{};
  const urma_eid_t none{};
  if (urma_str_to_eid(std::string(word).c_str(), &eid) != 0 || same(eid, none)) return std::nullopt;
  return eid;
}

}  // namespace urma::apps::capi
