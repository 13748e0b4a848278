// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"
#include "base/failed.h"

namespace urma {
namespace {

Error foreign(const std::string& what) {
  return failed(Status::invalid_argument, "publish: this ", what,
                " was moved from, or belongs to another device")
      .fix("publish one that this device made");
}

}  // namespace

Result<void> Device::publish(std::string_view name, const Segment& segment, const Jetty& jetty,
                             const Audience& audience) {
  return guarded("publish", [&]() -> Result<void> {
    if (auto able = usable(state_, "publish"); !able) return able.error();
    if (!segment.state_ || segment.state_->runner != state_->runner) return foreign("segment");
    if (!jetty.state_ || &jetty.state_->runner().engines() != &state_->engines())
      return foreign("Jetty");
    Descriptor descriptor = describe_device(state_->engines());
    descriptor.segment = segment.state_->describe();
    descriptor.jetty = jetty.state_->describe();
    return publish_line(name, to_string(descriptor), audience);
  });
}

Result<void> Device::publish(std::string_view name, const Segment& segment,
                             const Audience& audience) {
  return guarded("publish", [&]() -> Result<void> {
    if (auto able = usable(state_, "publish"); !able) return able.error();
    if (!segment.state_) return foreign("segment");
    return publish_line(name, segment.descriptor(), audience);
  });
}

Result<void> Device::publish(std::string_view name, const Jetty& jetty, const Audience& audience) {
  return guarded("publish", [&]() -> Result<void> {
    if (auto able = usable(state_, "publish"); !able) return able.error();
    if (!jetty.state_) return foreign("Jetty");
    return publish_line(name, jetty.descriptor(), audience);
  });
}

Result<void> Device::publish_line(std::string_view name, const std::string& line,
                                  const Audience& audience) {
  engine::Runner& runner = *state_->runner;
  if (!engine::valid_name(name)) {
    return failed(Status::invalid_argument, "publish: \"", name.substr(0, 80),
                  "\" is not a valid name")
        .fix("use 1 to 64 of A-Z a-z 0-9 . _ -, and do not start with a dot");
  }
  // Everything is allocated here, because a pass must not allocate; it only moves the entry.
  engine::Publications one;
  const auto& [key, publication] =
      *one.emplace(name,
                   engine::Publication{.line = line, .audience = audience, .device = state_->reach})
           .first;
  engine::NameFiles::Held held;
  if (!runner.simulated()) {
    Result<engine::NameFiles::Held> made =
        engine::NameFiles::of_this_user().publish(runner.port_facts().self, key, publication);
    if (!made) return made.error();
    held = std::move(*made);
  }
  {
    const std::lock_guard lock(state_->published_mutex);
    state_->published.insert_or_assign(key, std::move(held));
  }
  runner.call([&](engine::Engine& engine, Time) {
    engine.names().published().publish(one);
    return true;
  });
  return {};
}

Result<void> Device::unpublish(std::string_view name) {
  if (auto able = usable(state_, "unpublish"); !able) return able.error();
  engine::Runner& runner = *state_->runner;
  {
    const std::lock_guard lock(state_->published_mutex);
    const auto found = state_->published.find(name);
    if (found == state_->published.end()) {
      return guarded("unpublish", [&]() -> Result<void> {
        return failed(Status::not_found, "unpublish: this device does not publish \"", name, "\"")
            .fix("unpublish only names that this device publishes, and each once");
      });
    }
    state_->published.erase(found);
  }
  runner.call([&](engine::Engine& engine, Time) {
    engine.names().published().unpublish(name);
    return true;
  });
  return {};
}

}  // namespace urma
