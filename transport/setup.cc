// SPDX-License-Identifier: Apache-2.0
#include "transport/setup.h"

namespace urma::transport {

Setup::Setup(const Common& common, const SetupParts& parts)
    : common_(common),
      medium_(parts.medium),
      outbox_(common.settings, parts.own_paths, parts.medium, common.counters),
      openings_(common, parts, outbox_),
      admission_(common, parts, outbox_),
      closings_(common, parts, outbox_),
      paths_(common, parts, outbox_, openings_) {}

void Setup::handle(std::span<const std::byte> packet, const Endpoint& from, uint8_t path,
                   Time now) {
  const auto setup = parse_setup(packet, medium_.carrier());
  Counters& counters = common_.counters;
  if (!setup) return ignore(counters.malformed);
  ++counters.setup_received;
  if (setup->addresses.upi != Addresses::default_upi) return ignore(counters.wrong_partition);
  if (!medium_.may_come_from(setup->addresses.source, from)) return ignore(counters.wrong_source);
  const ArrivedSetup arrived{.addresses = setup->addresses,
                             .message = setup->message,
                             .from = from,
                             .path = path,
                             .now = now};
  switch (setup->message.type) {
    case SetupType::open:
      return admission_.handle_open(arrived);
    case SetupType::retry:
      return openings_.handle_retry(arrived);
    case SetupType::accept:
      return openings_.handle_accept(arrived);
    case SetupType::refuse:
      return openings_.handle_refuse(arrived);
    case SetupType::reset:
      return openings_.handle_reset(arrived);
    case SetupType::close:
      return closings_.handle_close(arrived);
    case SetupType::closed:
      return closings_.handle_closed(arrived);
    case SetupType::question:
      return paths_.handle_question(arrived);
    case SetupType::answer:
      return paths_.handle_answer(arrived);
    case SetupType::paths:
      return paths_.handle_paths(arrived);
    case SetupType::noted:
      return paths_.handle_noted(arrived);
  }
}

// A peer has one timer: the first of these parts that waits for something has armed it.
void Setup::handle_timer(Peer& peer, Time now) {
  if (peer.goodbyes > 0 || peer.closes > 0) return closings_.handle_timer(peer, now);
  if (peer.opening) return openings_.handle_timer(peer, now);
  if (peer.answered_open) admission_.handle_timer(peer, now);
}

}  // namespace urma::transport
