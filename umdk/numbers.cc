// SPDX-License-Identifier: Apache-2.0
#include "umdk/numbers.h"

#include <new>
#include <utility>

#include "umdk/place.h"

namespace urma::umdk {

Numbers::Numbers(std::optional<uint32_t> index) {
  if (!index) return;
  const uint32_t first = first_telling + *index * numbers_of_each;
  telling_.reserve(numbers_of_each);
  for (uint32_t i = 0; i < numbers_of_each; ++i) {
    telling_.push_back(JettyId(first + i));
    std::swap(telling_[entropy_.below(i + 1)], telling_[i]);
  }
}

Result<JettyId> Numbers::take(bool tells) {
  std::vector<JettyId>& given_back = tells && !telling_.empty() ? telling_ : others_;
  if (given_back.empty()) return draw();
  const JettyId id = given_back.back();
  given_back.pop_back();
  return id;
}

Result<JettyId> Numbers::draw() {
  try {
    if (taken_ == others_.capacity()) others_.reserve(2 * size_t{taken_} + 1);
  } catch (const std::bad_alloc&) {
    return Error{Status::no_resources, {}};
  }
  while (drawn_ < Shuffle::numbers) {
    const uint32_t number = order_(drawn_++);
    if (number < first_automatic || number >= first_telling) continue;
    ++taken_;
    return JettyId(number);
  }
  return Error{Status::no_resources,
               "all numbers of this context are in use. Fix: delete some queues, or create another "
               "context"};
}

void Numbers::give_back(JettyId id) {
  if (number(id) < first_automatic) return;
  (number(id) < first_telling ? others_ : telling_).push_back(id);
}

}  // namespace urma::umdk
