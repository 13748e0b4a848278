// SPDX-License-Identifier: Apache-2.0
#include "urma/core/statistics.h"

#include <set>
#include <string>

#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("each counter has its own row, in the order of the members") {
  Statistics statistics;
  const uint64_t* at = &statistics.works;
  for (const Metric& metric : all_metrics()) {
    INFO(metric.name);
    CHECK(&(statistics.*metric.value) == at++);
  }
  CHECK(at == &statistics.works + sizeof statistics / sizeof(uint64_t));
}

TEST_CASE("each row has a text for people and a name for programs") {
  std::set<std::string_view> names;
  for (const Metric& metric : all_metrics()) {
    INFO(metric.name);
    CHECK(names.insert(metric.name).second);
    CHECK_FALSE(metric.unit.empty());
    CHECK_FALSE(metric.part.empty());
    CHECK(metric.meaning.ends_with('.'));
    for (const std::string_view text : {metric.name, metric.unit, metric.part, metric.meaning}) {
      CHECK(text.find_first_of("\t\n") == text.npos);
    }
  }
}

}  // namespace
}  // namespace urma::test
