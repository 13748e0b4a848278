// SPDX-License-Identifier: Apache-2.0
#include "engine/name_service.h"

#include "jetty/channel_status.h"

namespace urma::engine {
namespace {

// The device that has the UB port of an address answers for all processes at that address.
PublishedNames::Options names_of(const Endpoint& self, bool one_process) {
  PublishedNames::Options options{.address = self.address, .all_admitted = one_process};
  if (!one_process && self.port == ub_port) options.neighbours = NameFiles::of_this_user();
  return options;
}

}  // namespace

NameService::NameService(LineJetty& lines, transport::Transport& transport, bool one_process)
    : lines_(lines), transport_(transport), published_(names_of(transport.self(), one_process)) {}

bool NameService::check(Question& question, Time now) {
  if (!question.ended(now)) {
    if (!question.take_due(now)) return false;
    // If the peer has left, it is looked up again, because the publisher may have been restarted.
    if (!transport_.knows(question.peer)) {
      question.peer = transport_.know({}, question.at, {});
      if (question.retransmission) transport_.choose(question.peer, *question.retransmission, now);
    }
    if (question.peer) {
      send(question.peer, {NameMessage::Kind::find, question.number, question.name});
    }
    return false;
  }
  questions_.remove(question);
  if (question.done) return true;
  // If the peer answers but does not accept a channel, its reason is reported, because asking again
  // would not help.
  const transport::Why why_not = transport_.why_not(question.peer);
  if (why_not != transport::Why::unreachable) question.status = jetty::status_of(why_not);
  return true;
}

void NameService::send(PeerId to, const NameMessage& message) {
  if (bytes_of(message) > LineJetty::line_bytes) return;
  lines_.send(to, [&](std::string& line) { write_name_message(message, line); });
}

bool NameService::handle(PeerId from, std::string_view line, Time now) {
  const auto message = read_name_message(line);
  if (!message) return false;
  if (message->kind == NameMessage::Kind::find) {
    answer(from, *message, now);
  } else {
    questions_.take_answer(from, *message);
  }
  return true;
}

void NameService::answer(PeerId asker, const NameMessage& question, Time now) {
  const auto facts = transport_.facts(asker);
  if (!facts || !valid_name(question.rest)) return;
  // If the audience of a name does not include the asker, the answer is the same as if the name did
  // not exist.
  const Publication* const publication = published_.find(question.rest, facts->eid, now);
  if (publication != nullptr) {
    send(asker, {NameMessage::Kind::found, question.number, publication->line});
  } else {
    send(asker, {NameMessage::Kind::none, question.number});
  }
}

}  // namespace urma::engine
