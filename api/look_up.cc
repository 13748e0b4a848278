// SPDX-License-Identifier: Apache-2.0
#include "api/look_up.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/failed.h"
#include "base/interfaces.h"
#include "base/loopback.h"

namespace urma {
namespace {

constexpr Duration look_again_after = std::chrono::milliseconds(10);

bool on_loopback(const Eid& address) {
  return Endpoint{address, 0}.is_ipv4() && address.bytes[12] == std::byte{127};
}

// Returns the time `limit` after `now`, which may be `never`.
Time after(Time now, Duration limit) { return limit > never - now ? never : now + limit; }

// Addresses in a window are always on this host: no two windows have the same number.
bool on_this_host(const Eid& address) {
  if (in_window(address)) return true;
  if (on_loopback(address)) return true;
  return find_interface_address(
      [&](const InterfaceAddress& one) { return one.address == address; });
}

// Returns whether the location is an address of this device, so that it would ask itself.
bool asks_itself(engine::Runner& runner, const Location& where) {
  const auto places = runner.paths().endpoints();
  return !where.local_host && (where.at == runner.port_facts().self ||
                               std::ranges::find(places, where.at) != places.end());
}

Error own_address(const Location& where) {
  const std::string address = to_string(where.at.address);
  return failed(Status::not_found, "import: this device has the address ", where.at,
                " itself and does not publish \"", where.name, "\" there")
      .add_if(on_loopback(where.at.address), ", nor is it published at another loopback address")
      .fix("open udp:", where.at.is_ipv4() ? address : "[" + address + "]",
           ":0 instead, which leaves that address to the process that publishes");
}

Error not_answered(const Location& where, Status status, const engine::NoRoom& no_room) {
  if (status == Status::not_found) {
    return failed(status, "no process at ", where.at, " publishes \"", where.name,
                  "\" to this process (only processes of the same user find a name, unless it is "
                  "published for others)")
        .usual_fix();
  }
  if (status == Status::version_mismatch) {
    return failed(status, "the process at ", where.at, " uses another version of the protocol")
        .usual_fix();
  }
  if (status == Status::no_resources) {
    return engine::explain_no_room("the process at " + to_string(where.at), no_room);
  }
  if (!in_window(where.at.address) && on_this_host(where.at.address) && loopback_is_down()) {
    return failed(Status::peer_unreachable, "no packet reaches ", where.at,
                  ", an address of this host, because the interface lo is down")
        .fix("as root, ip link set dev lo up");
  }
  return failed(Status::peer_unreachable, "no process answered at ", where.at, " for \"",
                where.name, "\"")
      .usual_fix();
}

// Processes cannot share a simulated network, so starting a server elsewhere would not help.
Error not_published_in_simulation(const Location& where, Status status) {
  if (status == Status::version_mismatch || status == Status::no_resources) {
    return not_answered(where, status, {});
  }
  return failed(status == Status::not_found ? status : Status::peer_unreachable,
                "import: no device of this process publishes \"", where.name,
                "\" in the simulated network")
      .add_if(!where.local_host, " at ", where.at)
      .add(", and sim: reaches no other process")
      .fix("publish it from a device of this process, or open cxl: or udp: on both sides");
}

// Returns the shortage of this device's medium, if the peer has no way because of it.
engine::NoRoom no_room_on(engine::Runner& runner, const Location& where) {
  engine::NoRoom out;
  runner.call([&](engine::Engine& engine, Time) {
    drivers::PacketPort& port = engine.port();
    Ways* const ways = port.ways();
    if (ways == nullptr || !ways->state(ways->way_to(where.at)).no_room) return true;
    out = {port.counters().shortage, &port.facts().backing};
    return true;
  });
  return out;
}

// Finds a name that a process of this user publishes at the location. If this device itself has the
// loopback address in question (`own`), a publisher that was started later has another loopback
// address, so all of these are searched.
Result<engine::Publication> find_here(const engine::Seeker& self, const Location& where, bool own) {
  const auto files = engine::NameFiles::of_this_user();
  if (where.local_host)
    return files.find(
        self, [](const Eid&) { return true; }, where.name);
  const Eid& asked = where.at.address;
  const auto there = [&asked](const Eid& at) { return at == asked; };
  auto found = files.find(self, there, where.name);
  if (found || found.status() != Status::not_found || !own || !on_loopback(asked)) return found;
  return files.find(self, on_loopback, where.name);
}

}  // namespace

LookUp::LookUp(std::shared_ptr<engine::Runner> runner, std::string device, Location where,
               const ImportOptions& options)
    : runner_(std::move(runner)),
      device_(std::move(device)),
      where_(std::move(where)),
      limit_(options.limit),
      own_(!runner_->simulated() && asks_itself(*runner_, where_)),
      here_(!runner_->simulated() &&
            (where_.local_host || (!where_.port_given && on_this_host(where_.at.address)))),
      // A question to this device itself would return only what the directory shows.
      asks_(runner_->simulated() || !(where_.local_host || (here_ && own_))),
      until_(after(read_clock(), limit_)) {
  question_.name = where_.name;
  question_.at = where_.at;
  question_.retransmission = options.retransmission;
  question_.line.reserve(engine::LineJetty::line_bytes);
}

LookUp::~LookUp() {
  // The engine of a child of fork() has a list of its own, in which no thread looks.
  if (!begun_ || answered_ || !runner_->here()) return;
  runner_->call([&](engine::Engine& engine, Time) {
    engine.names().withdraw(question_);
    return true;
  });
}

std::optional<Result<std::string>> LookUp::step(const TimerDescriptor& timer) {
  // Passes read the question as soon as it has begun.
  if (!begun_) question_.timer = timer.number();
  if (Ended ended = look()) return ended;
  if (!asks_) {
    timer.set(due());
    return outcome();
  }
  bool again = runner_->simulated();
  runner_->call([&](engine::Engine& engine, Time now) {
    const bool over = check(engine, now);
    // An answer comes in a pass, as this is, so it does not come between these two steps.
    if (!over) timer.set(due());
    // The time of a simulation advances while a call waits.
    return over || !std::exchange(again, false);
  });
  return outcome();
}

Result<std::string> LookUp::finish() {
  for (;;) {
    if (Ended ended = look()) return *ended;
    if (asks_) {
      runner_->call([&](engine::Engine& engine, Time now) {
        return check(engine, now) || (here_ && now >= look_at_);
      });
    } else {
      std::this_thread::sleep_for(look_again_after);
    }
    if (Ended ended = outcome()) return *ended;
  }
}

// Looks into the directory if that is due. Returns nothing if the name is not there yet.
LookUp::Ended LookUp::look() {
  const Time now = read_clock();
  if (!here_ || now < look_at_) return {};
  look_at_ = now + look_again_after;
  auto found = find_here({runner_->port_facts().self.address, device_}, where_, own_);
  if (found) return found->line;
  last_ = found.error();
  if (last_.status != Status::not_found) return last_;
  if (own_) last_ = own_address(where_);
  return {};
}

// Sends or repeats the question if that is due. Returns whether it has ended.
bool LookUp::check(engine::Engine& engine, Time now) {
  if (!begun_) {
    begun_ = true;
    question_.until = runner_->simulated() ? after(now, limit_) : until_;
    engine.names().ask(question_, now);
  }
  answered_ = answered_ || engine.names().check(question_, now);
  return answered_;
}

// Returns the line that was answered, or the error after the limit.
LookUp::Ended LookUp::outcome() {
  if (!asks_) {
    if (read_clock() < until_) return {};
    return last_;
  }
  if (!answered_) return {};
  if (question_.done) return question_.line;
  if (runner_->simulated()) return not_published_in_simulation(where_, question_.status);
  if (own_) return own_address(where_);
  return not_answered(where_, question_.status, no_room_on(*runner_, where_));
}

// Returns when the next step is due if no answer comes before.
Time LookUp::due() const {
  // Only calls of the application run an inlined device, and with it the way of an answer.
  constexpr Duration without_service = std::chrono::milliseconds(1);
  Time due = asks_ ? std::min(question_.ask_at, question_.until) : until_;
  if (here_) due = std::min(due, look_at_);
  return runner_->has_service() ? due : std::min(due, read_clock() + without_service);
}

}  // namespace urma
