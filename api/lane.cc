// SPDX-License-Identifier: Apache-2.0
#include "engine/lane.h"

#include "api/handles.h"
#include "base/accelerator_memory.h"
#include "base/failed.h"

namespace urma {

struct Lane::State {
  State(const std::shared_ptr<engine::Runner>& runner, const RemoteSegment& segment)
      : lane(runner, segment) {}
  engine::Lane lane;
};

namespace {

Error cannot_open(Status status) {
  switch (status) {
    case Status::unsupported:
      return failed(status, "lane: the segment is not mapped here, or is handed over as a file")
          .fix("post works, or allocate it on a cxl: device without share=segment");
    case Status::remote_access:
      return failed(status, "lane: the segment is revoked, or its token is not valid any longer")
          .fix("import the descriptor of a segment that its owner has not revoked");
    case Status::no_resources:
      return failed(status, "lane: this device has ", max_lanes, " lanes, which is the limit")
          .fix("destroy a lane that is not used");
    case Status::peer_restarted:
      return failed(status, "lane: the process that owned the segment has ended")
          .fix("import the descriptor that its new process makes");
    case Status::peer_unreachable:
      return failed(status, "lane: no channel to the owner of the segment was made in time")
          .fix("let the owner's process run, and poll if its device is inlined");
    default:
      return failed(status, "lane: the device is closed")
          .fix("keep the device open while its objects are used");
  }
}

}  // namespace

Lane::Lane(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lane::Lane(Lane&&) noexcept = default;
Lane& Lane::operator=(Lane&&) noexcept = default;
Lane::~Lane() = default;

Result<Lane> Jetty::lane(const RemoteSegment& segment) {
  return guarded("lane", [&]() -> Result<Lane> {
    if (auto able = usable(state_, "lane"); !able) return able.error();
    if (!segment.peer || segment.bytes == 0) {
      return Error{Status::invalid_argument,
                   "lane: the segment is empty. Fix: import the descriptor of a segment"};
    }
    if (!segment.mapped()) return cannot_open(Status::unsupported);
    engine::Runner& runner = state_->runner();
    auto state = std::make_unique<Lane::State>(
        state_->source.runner,
        runner.renames_peers() ? runner.engines().peers().inner(runner, segment) : segment);
    if (const Status status = state->lane.open(); status != Status::ok) return cannot_open(status);
    return Lane(std::move(state));
  });
}

Status Lane::write(std::span<const std::byte> data, uint64_t offset) {
  if (!state_) [[unlikely]]
    return Status::closed;
  if (AcceleratorMemory::has(data.data())) [[unlikely]]
    return Status::unsupported;
  return state_->lane.write(data.data() == nullptr ? std::span<const std::byte>() : data, offset);
}

Status Lane::read(std::span<std::byte> data, uint64_t offset) {
  if (!state_) [[unlikely]]
    return Status::closed;
  if (AcceleratorMemory::has(data.data())) [[unlikely]]
    return Status::unsupported;
  return state_->lane.read(data.data() == nullptr ? std::span<std::byte>() : data, offset);
}

Status Lane::operate(Atomic what, uint32_t bytes, uint64_t offset, uint64_t operand,
                     uint64_t expected, uint64_t& previous) {
  if (!state_) [[unlikely]]
    return Status::closed;
  return state_->lane.operate(
      {.what = what, .update = {}, .bytes = bytes, .operand = operand, .expected = expected},
      offset, previous);
}

}  // namespace urma
