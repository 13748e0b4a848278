// SPDX-License-Identifier: Apache-2.0
#include "tests/drivers/conformance_pairs.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {

// Two devices of one adapter, on both kinds of links.
void for_each_pair(const std::function<void(const std::string&, const std::string&)>& on) {
  soft::clear();
  soft::plug_in({.addresses = {ipv4(10, 9, 0, 1)}});
  soft::plug_in({.name = "soft1", .addresses = {ipv4(10, 9, 0, 2)}, .most_pieces = 2});
  soft::plug_in({.name = "ib0",
                 .link = soft::Link::infiniband,
                 .addresses = {parse_address("fe80::1").value()}});
  on("verbs:soft0?service=5001", "verbs:soft0?service=5002");
  on("verbs:soft0?service=5003&gather=no", "verbs:soft1?service=5004&gather=no");
  on("verbs:soft0?service=5007&rc=always", "verbs:soft1?service=5008&rc=always");
  on("verbs:ib0?service=5005&rc=always", "verbs:ib0?service=5006&rc=always");
}

}  // namespace urma::test
