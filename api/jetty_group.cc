// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"
#include "base/failed.h"

namespace urma {
namespace {

using Changed = engine::JettyControl::Changed;

Error not_ours(std::string_view call) {
  return failed(Status::invalid_argument, call,
                ": this Jetty was moved from, or belongs to another device")
      .fix("choose one that the group's device made");
}

}  // namespace

Result<JettyGroup> Device::jetty_group(const JettyGroupOptions& options) {
  return guarded("jetty_group", [&]() -> Result<JettyGroup> {
    if (auto able = usable(state_, "jetty_group"); !able) return able.error();
    if (!is_valid(options.policy)) {
      return Error{Status::invalid_argument,
                   "jetty_group: policy is not a valid GroupPolicy. Fix: choose "
                   "GroupPolicy::round_robin, hint or most_receives"};
    }
    if (state_->engines().count() > 1) {
      return Error{Status::unsupported,
                   "jetty_group: the Jetties of this device belong to several engines, and the "
                   "members of a group must belong to one. Fix: leave out engines= of the device"};
    }
    auto made = make_jetty(
        "jetty_group", {.berths = 0, .inline_bytes = 0, .id = options.id, .token = options.token},
        options.policy);
    if (!made) return made.error();
    return JettyGroup(std::move(*made));
  });
}

Result<void> JettyGroup::add(const Jetty& jetty) {
  return guarded("add", [&]() -> Result<void> {
    if (auto able = usable(jetty_.state_, "add"); !able) return able.error();
    engine::Runner& runner = jetty_.state_->runner();
    if (!jetty.state_ || &jetty.state_->runner() != &runner) return not_ours("add");
    Changed changed{};
    runner.call([&](engine::Engine& engine, Time) {
      changed = engine.jetty_control().add(jetty_.state_->made, jetty.state_->made.handle);
      return true;
    });
    if (changed == Changed::yes) return {};
    if (changed == Changed::full) {
      return failed(Status::no_resources, "add: the group has ", max_group_members,
                    " members, the most that it can have")
          .fix("remove one, or let several Jetties share a Jfr");
    }
    return Error{Status::invalid_argument,
                 "add: the Jetty is a member of the group already. Fix: add each Jetty once"};
  });
}

Result<void> JettyGroup::remove(const Jetty& jetty) {
  return guarded("remove", [&]() -> Result<void> {
    if (auto able = usable(jetty_.state_, "remove"); !able) return able.error();
    engine::Runner& runner = jetty_.state_->runner();
    if (!jetty.state_ || &jetty.state_->runner() != &runner) return not_ours("remove");
    Changed changed{};
    runner.call([&](engine::Engine& engine, Time) {
      changed = engine.jetty_control().remove(jetty_.state_->made, jetty.state_->made.handle);
      return true;
    });
    if (changed == Changed::yes) return {};
    return Error{Status::not_found,
                 "remove: the group does not have this Jetty. Fix: remove only members"};
  });
}

}  // namespace urma
