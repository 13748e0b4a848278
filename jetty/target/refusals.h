// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "jetty/event_sink.h"
#include "jetty/target/executor.h"
#include "jetty/target/guesses.h"
#include "transport/channel.h"

namespace urma::jetty {

// Raises the event of a refused request, so that the owner of the memory or Jetty can investigate,
// and decides until when a sender that guesses tokens is ignored; its caller stores that and acts
// on it. It does not know slices, nor how they are answered. Requests have one and datagrams
// another; only the thread that runs the engine calls it.
class Refusals {
 public:
  Refusals(const Executor& executor, transport::Channels& channels, EventSink& events)
      : executor_(executor), channels_(channels), events_(events) {}

  // A request was refused. `from` is null if the sender is not a known peer. If the sender guesses
  // tokens, returns until when it is to be ignored.
  [[gnu::cold]] std::optional<Time> note(PeerId from, const TaRequest& request,
                                         const OpcodeInfo& info, Time now);

 private:
  const Executor& executor_;
  transport::Channels& channels_;
  EventSink& events_;
  Guesses guesses_;
};

}  // namespace urma::jetty
