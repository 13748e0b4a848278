// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/packet_port.h"
#include "tests/fuzz/garbage.h"

namespace urma::fuzz {

// A port that owns another port, and lets garbage arrive between its packets, from genuine
// and forged addresses. No test network lets an outsider do that.
class GarbagePort final : public drivers::PacketPort {
 public:
  struct Counts {
    uint64_t left = 0;  // number of datagrams to insert
    uint64_t unsealed = 0;
    uint64_t sealed = 0;
    bool forged = false;  // also inserts packets that only an attacker on the path could make
  };

  GarbagePort(std::unique_ptr<drivers::PacketPort> inner, Garbage& garbage, Counts& counts)
      : inner_(std::move(inner)), garbage_(garbage), counts_(counts) {}

  const drivers::PortFacts& facts() const override { return inner_->facts(); }
  drivers::PortCounters counters() const override { return inner_->counters(); }
  size_t lend(std::span<TxFrame*> frames) override { return inner_->lend(frames); }
  void unlend(std::span<TxFrame* const> frames) override { inner_->unlend(frames); }
  uint64_t settled() override { return inner_->settled(); }
  std::span<const int> descriptors() const override { return inner_->descriptors(); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  drivers::VirtualClock* clock() override { return inner_->clock(); }

  size_t send(std::span<TxFrame* const> frames, Time now) override {
    for (const TxFrame* frame : frames) {
      if (garbage_.wants_more()) garbage_.saw(gathered(*frame, facts().self));
    }
    return inner_->send(frames, now);
  }

  // Real packets come first, then garbage as far as there is room.
  size_t receive(std::span<RxFrame> frames, Time now) override {
    const size_t real = inner_->receive(frames, now);
    thrown_.clear();
    thrown_.reserve(most_at_once);
    while (counts_.left > 0 && thrown_.size() < std::min(frames.size() - real, most_at_once)) {
      thrown_.push_back(next());
      frames[real + thrown_.size() - 1] = received(thrown_.back());
      frames[real + thrown_.size() - 1].cookie = ours;
      --counts_.left;
    }
    return real + thrown_.size();
  }
  void release(std::span<const RxFrame> frames) override {
    for (const RxFrame& frame : frames) {
      if (frame.cookie != ours) inner_->release({&frame, 1});
    }
  }
  // There is always garbage left.
  Time next_arrival() const override { return counts_.left > 0 ? Time{} : inner_->next_arrival(); }

 private:
  static constexpr size_t most_at_once = 16;
  static constexpr uint32_t ours = UINT32_MAX;

  Packet next() {
    const uint64_t turn = turns_++;
    const Endpoint self = facts().self;
    Endpoint stranger = self;
    stranger.address.bytes[14] = static_cast<std::byte>(1 + turn / 2 % 200);
    if (turn % 2 == 0) {
      ++counts_.unsealed;
      return garbage_.unsealed(turn % 4 == 0 ? stranger : self, self);
    }
    ++counts_.sealed;
    if (counts_.forged && turn % 4 == 1) {
      Packet forged = garbage_.forged();
      if (forged.to == self) return forged;
    }
    return garbage_.from_stranger(stranger, self);
  }

  std::unique_ptr<drivers::PacketPort> inner_;
  Garbage& garbage_;
  Counts& counts_;
  std::vector<Packet> thrown_;
  uint64_t turns_ = 0;
};

}  // namespace urma::fuzz
