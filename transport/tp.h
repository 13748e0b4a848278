#pragma once

#include <optional>
#include <span>

#include "congestion/controller.h"
#include "transport/counters.h"
#include "transport/packet_channel.h"
#include "transport/rtt.h"

namespace urma::transport {

// What both ends know of such a channel once it is made.
struct TpSettings {
  ChannelEnds ends;
  Psn first_sent{};
  Psn first_received{};
  Endpoint from;
  uint32_t send_window = 0;     // packets: the peer's out-of-order window
  uint32_t receive_window = 0;  // packets: ours
  uint64_t limit_bytes = 0;     // what the peer can buffer
  Duration first_rtt{};
  const congestion::ControllerKind* controller = nullptr;
};

// One reliable channel (RTP, UB 6). Everything offered arrives once, in any order; what is not
// acknowledged is pulled again from its owner, and what its owner withdrew leaves a filler behind,
// so that no hole in the PSNs ever stalls the neighbours.
class Tp final : public PacketChannel {
 public:
  // `index`: names the channel to the layer above. `counters` and `pools` outlive it.
  Tp(uint32_t index, const TpSettings& settings, Pools& pools, Counters& counters, Time now);
  ~Tp() override;

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

  // PacketChannel; lost packets go first, then answers, then requests.
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) override;
  bool owes_ack(Time now) const override;
  void fill_ack(TxFrame& frame) override;
  bool wants_to_send(Time now) const override;
  Time next_deadline() const override;
  [[gnu::cold]] std::optional<Why> handle_timer(Time now) override;
  Duration rtt() const override { return rtt_.smoothed(); }

  Psn next_psn() const { return sent_.next(); }

 private:
  struct Pulling {
    OfferedSlice what;
    uint32_t tpmsn = 0;
    uint16_t next = 0;
    uint16_t packets = 0;  // 0: nothing is being pulled
  };
  struct Plan;

  bool outstanding() const override { return !sent_.empty() || awaited_ > 0; }
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

  const Endpoint from_;
  const uint32_t send_window_;

  // Outwards.
  SentWindow sent_;
  Pulling pulling_;
  uint32_t next_tpmsn_;
  RttEstimator rtt_;
  uint8_t timeouts_in_row_ = 0;
  bool window_limited_ = false;
  Time timeout_at_ = never;
  alignas(8) std::byte controller_storage_[congestion::Controller::storage];
  congestion::Controller* controller_;

  // Inwards.
  ReceivedWindow received_;
  uint32_t owed_ = 0;  // packets to acknowledge
  bool ack_now_ = false;
  bool nak_due_ = false;
  bool nak_sent_ = false;  // and no TPACK since (UB 6.4.2: one TPNAK until the next TPACK)
  Time owed_since_{};
};

}  // namespace urma::transport
