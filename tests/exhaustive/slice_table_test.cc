// SPDX-License-Identifier: Apache-2.0
#include "jetty/slice_table.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::SliceAction;
using jetty::SliceEvent;
using jetty::SliceState;
using jetty::SliceStep;
using jetty::step;

constexpr unsigned states = static_cast<unsigned>(SliceState::done) + 1;
constexpr unsigned events = static_cast<unsigned>(SliceEvent::settled) + 1;

template <class Function>
void for_all(Function&& function) {
  for (unsigned s = 0; s < states; ++s) {
    for (unsigned e = 0; e < events; ++e) {
      for (const bool in_device : {false, true}) {
        const auto state = static_cast<SliceState>(s);
        const auto event = static_cast<SliceEvent>(e);
        INFO("state " << s << " event " << e << " in device " << in_device);
        function(state, event, in_device, step(state, event, in_device));
      }
    }
  }
}

bool left_before(SliceState state) {
  switch (state) {
    case SliceState::held:
    case SliceState::offered:
    case SliceState::stranded:
      return false;
    default:
      return true;
  }
}

TEST_CASE("a status is decided exactly when the slice ends or settles, and never again") {
  for_all([](SliceState state, SliceEvent, bool, const SliceStep& next) {
    const bool ended = next.state == SliceState::done || next.state == SliceState::settling;
    const bool was_ended = state == SliceState::done || state == SliceState::settling;
    CHECK(next.decided == (ended && !was_ended));
    if (was_ended) CHECK(next.action == SliceAction::none);
  });
}

TEST_CASE("memory that a driver may read is never returned, and only `settled` ends settling") {
  for_all([](SliceState state, SliceEvent event, bool in_device, const SliceStep& next) {
    if (state == SliceState::settling) {
      CHECK((next.state == SliceState::done) == (event == SliceEvent::settled));
    } else if (in_device && left_before(state) && state != SliceState::done) {
      CHECK(next.state != SliceState::done);
    }
  });
}

TEST_CASE("after a packet has left, only an answer of the target can give \"not executed\"") {
  for_all([](SliceState state, SliceEvent event, bool, const SliceStep& next) {
    if (!next.decided || !left_before(state)) return;
    if (event == SliceEvent::answered) return;  // the status comes from the answer
    const bool target_said_so = state == SliceState::waiting || event == SliceEvent::not_ready;
    if (target_said_so) {
      CHECK((next.status == Status::receiver_not_ready || next.status == Status::unknown));
    } else {
      CHECK(next.status == Status::unknown);
    }
  });
}

TEST_CASE("a slice of which no packet has left never ends unknown") {
  for_all([](SliceState state, SliceEvent, bool, const SliceStep& next) {
    if (next.decided && !left_before(state)) CHECK(next.status != Status::unknown);
  });
}

TEST_CASE(
    "a TASSN that may still reach its target is kept; one that was lost with its channel is not") {
  for_all([](SliceState state, SliceEvent event, bool, const SliceStep& next) {
    if (!next.decided) {
      CHECK_FALSE(next.tombstone);
      return;
    }
    const bool channel_gone = state == SliceState::held || state == SliceState::stranded ||
                              state == SliceState::parted || event == SliceEvent::channel_died ||
                              event == SliceEvent::unreachable || event == SliceEvent::peer_over;
    CHECK(next.tombstone == (!channel_gone && event != SliceEvent::answered));
  });
}

TEST_CASE("every cancelled slice ends when the withdrawal times out") {
  for_all([](SliceState state, SliceEvent event, bool, const SliceStep& next) {
    if (event != SliceEvent::cancel) return;
    const SliceStep overdue = step(next.state, SliceEvent::overdue, false);
    const bool ended = overdue.state == SliceState::done || overdue.state == SliceState::settling;
    CHECK(ended);
    (void)state;
  });
}

TEST_CASE("every slice ends when its peer has ended or is unreachable") {
  for (const SliceEvent event : {SliceEvent::peer_over, SliceEvent::unreachable}) {
    for (unsigned s = 0; s < states; ++s) {
      // The channel dies first, and the peer is declared dead afterwards.
      SliceState state = step(static_cast<SliceState>(s), SliceEvent::channel_died, false).state;
      state = step(state, event, false).state;
      INFO("state " << s);
      CHECK((state == SliceState::done || state == SliceState::settling));
    }
  }
}

TEST_CASE("after its channel died a slice is offered again, as a retry if packets had left") {
  for (unsigned s = 0; s < states; ++s) {
    const auto state = static_cast<SliceState>(s);
    const SliceStep died = step(state, SliceEvent::channel_died, false);
    const SliceStep back = step(died.state, SliceEvent::channel_back, false);
    INFO("state " << s);
    switch (state) {
      case SliceState::offered:
      case SliceState::stranded:
        CHECK(back == SliceStep{.state = SliceState::offered, .action = SliceAction::offer});
        break;
      case SliceState::reoffered:
      case SliceState::sending:
      case SliceState::delivered:
      case SliceState::waiting:
      case SliceState::parted:
        CHECK(back ==
              SliceStep{.state = SliceState::reoffered, .action = SliceAction::offer_again});
        break;
      default:
        CHECK(back.action == SliceAction::none);
    }
  }
}

TEST_CASE("from every reachable state some events lead to done") {
  // Finds all states that any sequence of events can reach.
  for (unsigned s = 0; s < states; ++s) {
    std::set<SliceState> seen{static_cast<SliceState>(s)};
    std::vector<SliceState> open(seen.begin(), seen.end());
    while (!open.empty()) {
      const SliceState state = open.back();
      open.pop_back();
      for (unsigned e = 0; e < events; ++e) {
        for (const bool in_device : {false, true}) {
          const SliceState next = step(state, static_cast<SliceEvent>(e), in_device).state;
          if (seen.insert(next).second) open.push_back(next);
        }
      }
    }
    INFO("state " << s);
    CHECK(seen.contains(SliceState::done));
  }
}

}  // namespace
}  // namespace urma::test
