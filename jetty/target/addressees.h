// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "jetty/groups.h"
#include "jetty/jetty.h"
#include "jetty/target/assembly.h"
#include "wire/ta_headers.h"

namespace urma::jetty {

// Which Jetty receives a message? It knows Jetties and groups, and nothing of slices but what their
// headers name. The Target owns it; only the thread that runs the engine calls it.
class Addressees {
 public:
  Addressees(Jetties& jetties, Groups& groups) : jetties_(jetties), groups_(groups) {}

  // Returns the Jetty that a message names, or null if there is none, if it accepts no messages, or
  // if this is not its token: so a peer cannot find Jetties by trying ids. A message to a group
  // names none.
  [[gnu::always_inline]] Jetty* jetty(const Mtetah& named, TokenValue token) {
    Jetty* const jetty = jetties_.find(JettyId(named.target));
    if (jetty == nullptr || !jetty->accepts_messages()) return nullptr;
    return (number(jetty->token) ^ number(token)) == 0 ? jetty : nullptr;
  }
  // Returns whose receives are taken by messages to this Jetty, or null if its JFR is destroyed.
  Jetty* receiver(Jetty& jetty) { return jetties_.receiver(jetty); }

  // The Jetty that receives a message or a write with an immediate, which may be a member of a
  // group. If there is none, `why` says so.
  struct Found {
    Jetty* jetty = nullptr;
    Assembly::Verdict why = Assembly::Verdict::run;
  };
  Found find(const Mtetah& named, TokenValue token, bool immediate);

  // Returns the Jetty, or the group, of this number, whatever its state is; null if there is none.
  Jetty* with_number(const Mtetah& named);

 private:
  Found member(const Mtetah& named, TokenValue token, bool immediate);
  std::optional<uint32_t> room(Handle member, bool immediate);

  Jetties& jetties_;
  Groups& groups_;
};

}  // namespace urma::jetty
