// SPDX-License-Identifier: Apache-2.0
#include "engine/published_names.h"

#include <new>

namespace urma::engine {

void PublishedNames::publish(Publications& names) {
  for (const auto& [name, publication] : names) unpublish(name);
  own_.merge(names);
}

void PublishedNames::unpublish(std::string_view name) {
  if (const auto found = own_.find(name); found != own_.end()) own_.erase(found);
}

const Publication* PublishedNames::find(std::string_view name, const Eid& asker, Time now) {
  const Publication* const found = find(name, now);
  const bool given = found != nullptr && (options_.all_admitted || found->audience.admits(asker));
  return given ? found : nullptr;
}

const Publication* PublishedNames::find(std::string_view name, Time now) {
  if (const auto ours = own_.find(name); ours != own_.end()) return &ours->second;
  if (!options_.neighbours) return nullptr;
  const Publications& others = neighbours(now);
  const auto found = others.find(name);
  return found != others.end() ? &found->second : nullptr;
}

const Publications& PublishedNames::neighbours(Time now) {
  if (now < look_at_) return neighbours_;
  look_at_ = now + look_again_after;
  try {
    neighbours_ = options_.neighbours->all(options_.address);
  } catch (const std::bad_alloc&) {
    neighbours_.clear();  // the asking process repeats its question
  }
  return neighbours_;
}

}  // namespace urma::engine
