// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "drivers/remote_access.h"
#include "drivers/verbs/end_maker.h"
#include "drivers/verbs/registered.h"

namespace urma::drivers::verbs {

// The pairs of a device (RC): which ends there are, and which transfers are in them. A transfer is
// one work of the adapter. Used by the thread that runs the port.
class ReliableEnds final : public RemoteAccess {
 public:
  struct Settings {
    uint32_t least_bytes = 0;  // of a work
  };
  // `signals`: the completion channel of the port. All of these outlive the object. Returns null if
  // the adapter gives no completion queue, or the system no descriptor.
  static std::unique_ptr<ReliableEnds> make(const Adapter& adapter, RegisteredSegments& segments,
                                            ibv_comp_channel& signals, const Settings& settings);

  uint32_t least_bytes() const override { return settings_.least_bytes; }
  Handle make(bool opens) override;
  void connect(Handle end, const Description& other, const Eid& address) override;
  void stop(Handle end) override;
  size_t news(std::span<News> out) override;
  Begun begin(Handle end, const Task& task) override;
  size_t ended(std::span<Ended> out) override;
  std::optional<Opened> opened(std::span<const std::byte> memory, Rights rights,
                               Rights wanted) const override {
    return segments_.opened(memory, rights, wanted);
  }

  // The channel becomes readable at the next completion, if transfers are in the queue.
  void arm() const {
    if (free_transfers_.size() < most_transfers) ibv_req_notify_cq(completions_.get(), 0);
  }
  // Returns a descriptor that becomes readable when there is news.
  int descriptor() const { return maker_->news(); }
  void clear_news() const { maker_->clear_news(); }
  // The adapter was removed: nothing ends by itself any longer.
  void fail_all();

 private:
  static constexpr uint32_t most_transfers = 1024;

  enum class State : uint8_t { none, new_, connected, failed, stopping };
  struct End {
    uint32_t generation = 0;
    State state = State::none;
    uint32_t transfers = 0;
  };
  struct Transfer {
    uint32_t generation = 0;
    uint32_t end = UINT32_MAX;  // none
    uint32_t number = 0;        // the caller's
  };

  ReliableEnds(const Adapter& adapter, RegisteredSegments& segments, CompletionQueue completions,
               const Settings& settings);
  End* find(Handle end);
  Handle handle_of(uint32_t end) const { return {end, ends_[end].generation}; }
  unsigned gather(const Task& task, std::span<ibv_sge> parts) const;
  void fail(uint32_t end);
  void take_results();
  void destroyed(uint32_t end);
  [[nodiscard]] bool take_completions();
  void finish(Transfer& transfer, bool done);

  const Settings settings_;
  const unsigned most_parts_;
  RegisteredSegments& segments_;
  CompletionQueue completions_;
  bool broken_ = false;  // the completion queue
  std::array<End, EndMaker::most> ends_;
  std::array<Transfer, most_transfers> transfers_;
  std::vector<uint32_t> free_transfers_;
  std::vector<Ended> ended_;
  std::vector<News> news_;
  std::vector<EndMaker::Result> results_;  // within `take_results` only
  std::unique_ptr<EndMaker> maker_;        // is destroyed first
};

}  // namespace urma::drivers::verbs
