// SPDX-License-Identifier: Apache-2.0
#include "transport/setup_outbox.h"

#include "transport/rtp/reports.h"

namespace urma::transport {
namespace {

constexpr Duration reset_refill = std::chrono::milliseconds(10);
constexpr uint32_t resets_per_refill = 10;

ReportOffer offer_of(const Settings& settings) {
  if (settings.ways != nullptr) return {};
  // Reports about data are of no use if the driver that sends the data carries no signals.
  const ReportForm wants = form_for(settings.controller->needs);
  return {.gives = settings.reports,
          .wants = settings.reports.contain(wants) ? wants : ReportForm::none};
}

}  // namespace

SetupOutbox::SetupOutbox(const Settings& settings, const OwnPaths& own_paths, Medium& medium,
                         Counters& counters)
    : settings_(settings), own_paths_(own_paths), medium_(medium), counters_(counters) {}

SetupMessage SetupOutbox::ours(SetupType type, const Peer* peer) const {
  const Retransmission& mode = mode_for(peer, settings_);
  SetupMessage message;
  message.type = type;
  message.from_life = number(settings_.life);
  message.features = feature_filler | feature_sequences | features_of(mode);
  message.receive_window = static_cast<uint16_t>(mode.window_packets);
  message.tassn_window = static_cast<uint16_t>(settings_.tassn_window);
  message.atomic_results = static_cast<uint16_t>(settings_.atomic_results);
  message.reads = static_cast<uint16_t>(settings_.reads);
  message.buffer_bytes = settings_.buffer_bytes;
  const bool names_paths =
      type == SetupType::open || type == SetupType::accept || type == SetupType::paths;
  if (names_paths) {
    message.features |= feature_new_paths;
    message.paths = own_paths_.current();
    if (own_paths_.may_change()) message.features |= feature_paths;
  }
  return message;
}

// An end whose controller reacts to loss alone opens channels as ends do that do not know reports.
ReportOffer SetupOutbox::offer() const {
  const ReportOffer all = offer_of(settings_);
  return all.wants == ReportForm::none ? ReportOffer{} : all;
}

ReportOffer SetupOutbox::offer_to(const SetupMessage& open) const {
  return offered_by(open.features) == ReportOffer{} ? ReportOffer{} : offer_of(settings_);
}

SetupMessage SetupOutbox::on_channel(SetupType type, const Peer& peer) const {
  SetupMessage message = ours(type);
  message.to_life = number(peer.life);
  message.from_tpn = number(peer.channel->local());
  message.to_tpn = number(peer.channel->remote());
  return message;
}

void SetupOutbox::push(const OutgoingSetup& message) {
  if (count_ == capacity) return ignore(counters_.setup_unsent);
  ring_[(first_ + count_) % capacity] = message;
  ++count_;
  medium_.hold_for_setup(true);
}

void SetupOutbox::answer(const ArrivedSetup& to, SetupMessage message) {
  message.to_life = to.message.from_life;
  message.to_tpn = to.message.from_tpn;
  message.attempt = to.message.attempt;
  push({.to = to.from,
        .addresses = addresses_to(to.addresses.source),
        .message = message,
        .path = to.path});
}

void SetupOutbox::reset(const SetupMessage& about, const Endpoint& to, uint8_t path, Time now) {
  if (now - resets_refilled_ >= reset_refill) {
    resets_refilled_ = now;
    resets_left_ = resets_per_refill;
  }
  if (resets_left_ == 0) return ignore(counters_.setup_unsent);
  --resets_left_;
  SetupMessage reset = about;
  reset.type = SetupType::reset;
  push({.to = to, .addresses = addresses_to({}), .message = reset, .path = path});
}

size_t SetupOutbox::fill(std::span<TxFrame* const> frames) {
  size_t used = 0;
  while (count_ > 0 && used < frames.size()) {
    const bool leaves = write(ring_[first_], *frames[used]);
    used += leaves;
    ++(leaves ? counters_.setup_sent : counters_.setup_unsent);
    first_ = (first_ + 1) % capacity;
    --count_;
  }
  medium_.hold_for_setup(waits());
  return used;
}

// Returns false if the message cannot leave now.
bool SetupOutbox::write(const OutgoingSetup& message, TxFrame& frame) {
  write_setup(frame, message.addresses, message.message, message.padded_to, medium_.carrier(),
              own_paths_.encoded());
  frame.to = message.to;
  frame.path = message.path;
  return medium_.finish(frame);
}

}  // namespace urma::transport
