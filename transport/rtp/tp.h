// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <new>
#include <optional>
#include <span>

#include "transport/counters.h"
#include "transport/packet_channel.h"
#include "transport/rtp/loss_detection.h"
#include "transport/rtp/pacer.h"
#include "transport/rtp/receipts.h"
#include "transport/rtp/reports.h"
#include "transport/rtp/retransmission_timer.h"
#include "transport/rtp/rtp_pools.h"
#include "transport/rtp/sent_window.h"
#include "urma/core/balance.h"

namespace urma::transport {

struct ParsedAck;

// The parameters of a Tp, which set-up has negotiated.
struct TpSettings {
  ChannelEnds ends;
  Psn first_sent{};
  Psn first_received{};
  uint32_t send_window = 0;  // packets; the out-of-order window of the peer
  uint64_t limit_bytes = 0;  // how much the peer can buffer
  Duration first_rtt{};      // of the set-up; zero if it was not measured
  // How this end retransmits what it sends. It also determines the window and the acknowledgements
  // for packets that this end receives. Outlives the channel.
  const Retransmission* mode = nullptr;
  Retransmission peers_mode{};  // how the peer retransmits what it sends
  const congestion::ControllerKind* controller = nullptr;
  ReportForm gives = ReportForm::none;  // how this end reports congestion to the peer
  ReportForm takes = ReportForm::none;  // how the peer reports it to this end
  // What the controller is told of this device. The channel adds what differs between channels.
  congestion::Settings pacing{};
  const PathList* paths = nullptr;  // of this device; outlives the channel
  uint8_t path = 0;                 // index in `paths` of the only path, if `routes` is null
  Routes* routes = nullptr;         // null if the channel has one path; outlives the channel
  Balance balance = Balance::slice;
};

// One reliable channel over a medium that loses packets (RTP, UB 6; UB 4.1.1). Each slice that is
// offered arrives once; slices arrive in any order. Tp knows which packets are sent, lost and
// received, but not what they contain: the PacketSource writes a packet when it leaves, and again
// when it was lost. If the owner of a slice has withdrawn it meanwhile, a filler packet takes the
// number, so that no hole in the PSNs stalls other slices.
//
// The medium owns the channel and calls it only on the thread that runs the engine. Tp owns the
// records of sent and of received packets, the timer and the pacer; it refers to routes, modes and
// pools that outlive it.
class Tp final : public PacketChannel {
 public:
  // `index`: names the channel to the layer above. `counters` and `pools` outlive it.
  Tp(uint32_t index, const TpSettings& settings, RtpPools& pools, Counters& counters, Time now);
  ~Tp() override;

  // Returns whether all packets before this data packet have arrived.
  bool in_order(const Rtph& header) const { return receipts_.in_order(header); }
  // Returns whether `handle_data` would return true for it.
  bool is_fresh(const Rtph& header) const { return receipts_.is_fresh(header, pools().bitmaps); }
  // Handles a data packet whose ICRC is right; answers of transactions are data packets, too
  // (UB 4.3.9). `frame`: the whole packet. Returns true if the packet is new and is to be handed to
  // the layer above.
  bool handle_data(const Rtph& header, const RxFrame& frame, Time now);
  // Handles a TPACK, TPNAK or TPSACK. `rest` follows the RTPH, `frame` is the whole packet. Reports
  // delivered slices to `sink`. One with a report of congestion is handled only if acknowledgements
  // may have one.
  void handle_ack(const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                  Time now, PacketSink& sink);
  // Handles a CNP.
  [[gnu::cold]] void handle_notification(std::span<const std::byte> rest, const RxFrame& frame,
                                         Time now);

  // PacketChannel. Lost packets leave first, then answers, then requests.
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) override;
  bool owes_ack(Time now) const override {
    return receipts_.due(mode_, pools().waits, rtt(), now) ||
           (reports_given_.any() && routes().reports().due(reports_given_));
  }
  // A CNP leaves before the acknowledgement, which then is still owed. With several routes, each
  // one whose report is due has an acknowledgement of its own.
  void fill_ack(TxFrame& frame) override;
  bool wants_to_send(Time now) const override;
  Time next_deadline() const override;
  [[gnu::cold]] std::optional<Why> handle_timer(Time now) override;
  bool leads_to(const Endpoint& endpoint) const override {
    return to_ == endpoint || routes().leads_to(endpoint);
  }
  Duration rtt() const override { return timer_.rtt().smoothed(); }
  size_t view(std::span<ChannelView> out, Time now) const override;

  Psn next_psn() const { return sent_.next(); }
  ChannelRoutes routes() const { return sent_.routes(); }
  const Retransmission& mode() const { return mode_; }
  // With several routes, only its form counts.
  const ReportsTaken& reports_taken() const { return reports_taken_; }

 private:
  // The slice whose packets are being sent for the first time.
  struct Pulling {
    OfferedSlice what;
    uint32_t tpmsn = 0;
    uint16_t next = 0;     // the packet of the slice that leaves next
    uint16_t packets = 0;  // of the slice; 0 if none is being pulled
    uint8_t route = 0;

    // Returns the payload bytes of the packet that leaves next.
    uint32_t payload(uint32_t packet_bytes) const {
      return std::min(packet_bytes, what.bytes - next * packet_bytes);
    }
  };
  struct Plan;  // the burst that `fill` puts together

  // Those that the channel was made with.
  RtpPools& pools() const { return static_cast<RtpPools&>(shared_); }
  bool outstanding() const override { return !sent_.empty() || awaited_ > 0; }
  // Returns whether the windows permit another new packet. `window`: that of the pacer. `planned`:
  // bytes of lost packets that leave in the same burst. Here and below, the routes' departures are
  // ignored if `now` is `never`.
  bool window_open(uint32_t payload, uint64_t window, Time now, uint64_t planned = 0) const;
  // Returns whether a packet waits, and windows permit it. New ones wait for lost ones.
  bool can_send(Time now) const;
  // A packet of the burst is about to leave. Returns its CCI.
  uint16_t depart(const Plan& plan, uint8_t route, const congestion::Sent& packet);
  [[gnu::cold]] void plan_lost(Plan& plan, Time now);
  void plan_new(Plan& plan, Time now);
  [[gnu::cold]] void plan_keep_alive(Plan& plan, Time now);
  bool pick_slice(Plan& plan, Time now);
  void finish(const PacketSlot& slot, SentWindow::Packet& packet, Psn psn, bool ask, Time now);
  size_t end_frame(TxFrame& frame, size_t written, uint8_t route) const;
  void apply(const ParsedAck& ack, Time now, PacketSink& sink);
  // These inform the congestion controllers. `inflight_bytes`: before the acknowledgement.
  void note_acknowledged(const SentWindow::Acknowledgement& news, uint64_t inflight_bytes,
                         const congestion::Feedback* feedback, Time now);
  void note_lost(uint64_t bytes, bool timed_out, Time now);
  [[gnu::cold]] void handle_time_out(Time now);

  // Small members are declared next to each other, or lie in the padding of the members before them
  // (no_unique_address), which keeps an idle channel small.
  uint32_t retransmitted_ = 0;  // packets, each copy; stops at its largest value, as `spurious_`
  const PathList& paths_;
  const Retransmission& mode_;
  // The sending direction.
  [[no_unique_address]] SentWindow sent_;
  [[no_unique_address]] Pulling pulling_;
  const Balance balance_;
  const uint8_t path_;
  bool window_limited_ = false;      // a packet of the last burst had to wait for a window
  uint32_t acknowledged_bytes_ = 0;  // modulo 2^32, as ChannelView::acknowledged_bytes
  ReportsTaken reports_taken_;
  [[no_unique_address]] Pacer pacer_;
  uint8_t questions_due_ = 0;  // packets that leave although the window is full
  const uint16_t send_window_;
  uint32_t spurious_ = 0;  // packets that were believed lost and arrived
  [[no_unique_address]] LossDetection losses_;
  uint32_t next_tpmsn_;
  [[no_unique_address]] RetransmissionTimer timer_;

  // The receiving direction.
  ReportsGiven reports_given_;  // with several routes, only its form counts
  Receipts receipts_;
};

}  // namespace urma::transport
