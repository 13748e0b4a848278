#pragma once

#include <optional>
#include <span>

#include "congestion/controller.h"
#include "transport/counters.h"
#include "transport/icrc.h"
#include "transport/received_window.h"
#include "transport/rtt.h"
#include "transport/sent_window.h"
#include "transport/upper.h"
#include "urma/base/turns.h"

namespace urma::transport {

// What waits to be pulled, of one class.
struct OfferedSlice {
  SliceRef slice;
  uint32_t bytes = 0;
};
using OfferQueue = ChunkQueue<OfferedSlice, 32>;

// A burst in the making: what is written, and where it is remembered. One at a time, so that the
// channels of an engine share it.
struct Burst {
  static constexpr size_t capacity = 64;

  std::array<PacketSlot, capacity> slots;
  std::array<SentWindow::Packet*, capacity> packets;
  std::array<Psn, capacity> psns;
};

// Memory that the channels of an engine share.
struct Pools {
  SentWindow::Pool sent;
  OfferQueue::Pool offered;
  ReceivedWindow::Pool bitmaps;
  Turns active;  // channels that may have something to send
  Burst burst;
  std::array<SliceRef, Burst::capacity> delivered;  // by one ack, at a time
  IcrcPrefix prefix;                                // of what was sent last

  // `packets`: in flight over all channels.
  Pools(uint32_t packets, uint32_t slices, uint32_t channels);
};

// What both ends know of a channel once it is made.
struct TpSettings {
  PeerId peer;
  Tpn local{};
  Tpn remote{};
  Psn first_sent{};
  Psn first_received{};
  Endpoint from;
  Endpoint to;
  uint32_t send_window = 0;     // packets: the peer's out-of-order window
  uint32_t receive_window = 0;  // packets: ours
  uint64_t limit_bytes = 0;     // what the peer can buffer
  Facts facts;
  Duration first_rtt{};
  const congestion::ControllerKind* controller = nullptr;
};

// One reliable channel (RTP, UB 6). Everything offered arrives once, in any order; what is not
// acknowledged is pulled again from its owner, and what its owner withdrew leaves a filler behind,
// so that no hole in the PSNs ever stalls the neighbours.
class Tp final : public Channel {
 public:
  // `index`: names the channel to the layer above. `counters` and `pools` outlive it.
  Tp(uint32_t index, const TpSettings& settings, Pools& pools, Counters& counters, Time now);
  Tp(const Tp&) = delete;
  Tp& operator=(const Tp&) = delete;
  ~Tp() override;

  // Channel
  bool offer(SliceRef slice, Class traffic, uint32_t bytes) override;
  void expect_answers(int32_t change, Time now) override;
  Time last_progress() const override { return last_progress_; }
  const Facts& facts() const override { return facts_; }

  // Whether everything before this data packet has come.
  bool in_order(const Rtph& header) const {
    return Psn::unwrap(received_.expected(), header.psn) == received_.expected();
  }
  bool is_fresh(const Rtph& header) const {
    const Psn psn = Psn::unwrap(received_.expected(), header.psn);
    return received_.classify(psn, pools_.bitmaps) == ReceivedWindow::Arrival::fresh;
  }
  // A data packet whose ICRC is right. True: it is fresh, hand it on.
  bool handle_data(const Rtph& header, Time now);
  // A TPACK, TPNAK or TPSACK. `rest` follows the RTPH. Delivered slices are reported to `sink`.
  void handle_ack(const Rtph& header, std::span<const std::byte> rest, Time now, PacketSink& sink);

  // Writes packets into `frames` and returns how many: lost ones first, then answers, then
  // requests.
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now);
  bool owes_ack(Time now) const;
  // Writes the ack that is owed.
  void fill_ack(TxFrame& frame);
  bool wants_to_send(Time now) const;
  // Asks a peer of which nothing is awaited for a sign of life: an idle channel is never judged.
  void probe(Time now);

  // Nothing happens by itself before this time.
  Time next_deadline() const;
  // False: the peer has been silent for too long; the channel is dead.
  [[gnu::cold]] bool handle_timer(Time now);

  PeerId peer() const { return peer_; }
  uint32_t index() const { return index_; }
  Tpn local() const { return local_; }
  Tpn remote() const { return remote_; }
  const Endpoint& to() const { return to_; }
  Psn next_psn() const { return sent_.next(); }
  bool heard() const { return heard_; }
  Time last_heard() const { return last_heard_; }
  Duration rtt() const { return rtt_.smoothed(); }
  bool idle() const { return !outstanding() && offered_[0].empty() && offered_[1].empty(); }

 private:
  struct Pulling {
    OfferedSlice what;
    uint32_t tpmsn = 0;
    uint16_t next = 0;
    uint16_t packets = 0;  // 0: nothing is being pulled
  };
  struct Plan;

  bool outstanding() const { return !sent_.empty() || awaited_ > 0; }
  uint32_t payload_of(const Pulling& pulling) const;
  bool window_open(uint32_t payload) const;
  bool can_send_lost() const;
  bool can_send_new() const;
  [[gnu::cold]] void plan_lost(Plan& plan);
  void plan_new(Plan& plan, Time now);
  [[gnu::cold]] void plan_keep_alive(Plan& plan, Time now);
  bool pick_slice(Plan& plan);
  void finish(const PacketSlot& slot, SentWindow::Packet& packet, Psn psn, bool ask, Time now);
  void end_frame(TxFrame& frame) const;
  void owe_ack(Time now);
  Duration ack_delay() const;

  const uint32_t index_;
  const PeerId peer_;
  const Tpn local_;
  const Tpn remote_;
  const Endpoint from_;
  const Endpoint to_;
  const Facts facts_;
  Pools& pools_;
  Counters& counters_;
  const uint32_t send_window_;

  // Outwards.
  SentWindow sent_;
  OfferQueue offered_[classes];
  Pulling pulling_;
  uint32_t next_tpmsn_;
  uint32_t awaited_ = 0;
  RttEstimator rtt_;
  uint8_t timeouts_in_row_ = 0;
  bool keep_alive_due_ = false;
  bool window_limited_ = false;
  Time timeout_at_ = never;
  Time last_progress_;
  alignas(8) std::byte controller_storage_[congestion::Controller::storage];
  congestion::Controller* controller_;

  // Inwards.
  ReceivedWindow received_;
  uint32_t owed_ = 0;  // packets to acknowledge
  bool ack_now_ = false;
  bool nak_due_ = false;
  bool nak_sent_ = false;  // and no TPACK since (UB 6.4.2: one TPNAK until the next TPACK)
  bool heard_ = false;     // anything at all, on this channel
  Time owed_since_{};
  Time last_heard_;  // or the time from which silence counts
};

}  // namespace urma::transport
