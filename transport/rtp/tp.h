#pragma once

#include <optional>
#include <span>

#include "congestion/controller.h"
#include "transport/counters.h"
#include "transport/packet_channel.h"
#include "transport/rtp/loss.h"
#include "transport/rtp/received_window.h"
#include "transport/rtp/retransmission_timer.h"
#include "transport/rtp/rtp_pools.h"
#include "transport/rtp/sent_window.h"
#include "urma/core/balance.h"

namespace urma::transport {

// What both ends know of such a channel once it is made.
struct TpSettings {
  ChannelEnds ends;
  Psn first_sent{};
  Psn first_received{};
  uint32_t send_window = 0;  // packets: the peer's out-of-order window
  uint64_t limit_bytes = 0;  // what the peer can buffer
  Duration first_rtt{};
  // Of what we send, and the windows of what we receive; outlives the channel.
  const Retransmission* mode = nullptr;
  Retransmission peers_mode{};  // of what it sends
  const congestion::ControllerKind* controller = nullptr;
  const PathList* paths = nullptr;  // ours; outlives the channel
  uint8_t path = 0;                 // the only one of them, if there are no routes
  Routes* routes = nullptr;         // not null: packets take these; outlives the channel
  Balance balance = Balance::slice;
};

// One reliable channel (RTP, UB 6; UB 4.1.1). Everything offered arrives once, in any order; what
// is not acknowledged is pulled again from its owner, and what its owner withdrew leaves a filler
// behind, so that no hole in the PSNs ever stalls the neighbours.
class Tp final : public PacketChannel {
 public:
  // `index`: names the channel to the layer above. `counters` and `pools` outlive it.
  Tp(uint32_t index, const TpSettings& settings, RtpPools& pools, Counters& counters, Time now);
  ~Tp() override;

  // Whether everything before this data packet has come.
  bool in_order(const Rtph& header) const { return number_of(header) == received_.expected(); }
  bool is_fresh(const Rtph& header) const {
    return received_.classify(number_of(header), pools_.bitmaps) == ReceivedWindow::Arrival::fresh;
  }
  // A data packet whose ICRC is right; answers of transactions are such, too (UB 4.3.9). True: it
  // is fresh, hand it on.
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
  bool leads_to(const Endpoint& endpoint) const override {
    return to_ == endpoint || (routes() != nullptr && routes()->leads_to(endpoint));
  }
  Duration rtt() const override { return timer_.rtt().smoothed(); }

  Psn next_psn() const { return sent_.next(); }
  Routes* routes() const { return sent_.routes(); }
  const Retransmission& mode() const { return mode_; }

 private:
  struct Pulling {
    OfferedSlice what;
    uint32_t tpmsn = 0;
    uint16_t next = 0;
    uint16_t packets = 0;  // 0: nothing is being pulled
    uint8_t route = 0;
  };
  struct Plan;

  static congestion::Settings window_settings(const TpSettings& settings);
  bool outstanding() const override { return !sent_.empty() || awaited_ > 0; }
  // UB 4.3.4: of the numbers that these 24 bits may mean, one of [EPSN - 8M, EPSN + 8M - 1].
  Psn number_of(const Rtph& header) const {
    return Psn::unwrap(received_.expected() - 1, header.psn);
  }
  uint32_t payload_of(const Pulling& pulling) const;
  // `planned`: bytes that are about to leave again.
  bool window_open(uint32_t payload, uint64_t planned = 0) const;
  bool can_send_lost() const;
  bool can_send_new() const;
  [[gnu::cold]] void plan_lost(Plan& plan);
  void plan_new(Plan& plan, Time now);
  [[gnu::cold]] void plan_keep_alive(Plan& plan, Time now);
  bool pick_slice(Plan& plan);
  void finish(const PacketSlot& slot, SentWindow::Packet& packet, Psn psn, bool ask, Time now);
  // Whether the next packet of a slice goes another way than the one before: a slice keeps its path
  // while that has room, so that it keeps none waiting.
  bool leaves_route(uint32_t bytes) const {
    return balance_ == Balance::packet || routes()->one_at_a_time() ||
           !(*routes())[pulling_.route].usable || !routes()->has_room(pulling_.route, bytes);
  }
  uint8_t pick_route(uint32_t bytes) { return routes() == nullptr ? 0 : routes()->pick(bytes); }
  void end_frame(TxFrame& frame, uint8_t route) const;
  void owe_ack(Time now);
  void show_hole(Time now);
  Duration ack_delay() const;
  LossEvidence evidence_of(const SentWindow::Acknowledgement& news, Psn reported, Time now);
  Duration all_tolerance() const;
  uint64_t find_lost(const LossEvidence& evidence, Time now);
  void note_lost(uint64_t bytes, bool timed_out, Time now);
  [[gnu::cold]] void handle_time_out(Time now);

  // What a packet that comes out of order is answered with (UB 4.4): nothing, in its turn or at
  // once a TPSACK, or a TPNAK.
  enum class HoleAnswer : uint8_t { none, selective_owed, selective, negative };
  static HoleAnswer hole_answer(const Retransmission& peers_mode);

  // What is small stands together: an idle channel is no larger than it must be.
  RtpPools& pools_;
  const PathList& paths_;
  const Retransmission& mode_;
  const uint32_t send_window_;
  const Balance balance_;
  const uint8_t path_;
  // Inwards.
  bool ack_now_ = false;
  bool nak_due_ = false;
  bool nak_sent_ = false;  // and nothing in order, or again, since (UB 4.4.2)

  // Outwards.
  uint8_t questions_due_ = 0;  // so many packets leave although the window is full
  bool window_limited_ = false;
  uint32_t next_tpmsn_;
  SentWindow sent_;
  Pulling pulling_;
  RetransmissionTimer timer_;
  LatestArrival latest_;          // mode rack
  Time overtaken_until_ = never;  // mode rack: what a later packet has overtaken is lost then
  SentAgain sent_again_;          // mode fast, selective
  alignas(8) std::byte controller_storage_[congestion::Controller::storage];
  congestion::Controller* controller_;
  ReorderTolerance tolerance_;  // mode rack

  // Inwards.
  const HoleAnswer hole_answer_;
  uint32_t owed_ = 0;  // packets to acknowledge
  ReceivedWindow received_;
  Psn highest_dropped_;  // of what came out of order, where that is not kept
  Time owed_since_{};
};

}  // namespace urma::transport
