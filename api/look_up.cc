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
constexpr Duration one_question = std::chrono::milliseconds(250);

bool on_loopback(const Eid& address) {
  return Endpoint{address, 0}.is_ipv4() && address.bytes[12] == std::byte{127};
}

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

// Asks the process at the address until it answers, for at most `limit`.
engine::Question ask(engine::Runner& runner, const Location& where, Duration limit,
                     const std::optional<Retransmission>& mode) {
  engine::Question question;
  question.name = where.name;
  question.at = where.at;
  question.retransmission = mode;
  question.line.reserve(engine::LineJetty::line_bytes);
  bool begun = false;
  runner.call([&](engine::Engine& engine, Time now) {
    if (!begun) {
      begun = true;
      question.until = limit > never - now ? never : now + limit;
      engine.names().ask(question, now);
    }
    return engine.names().check(question, now);
  });
  return question;
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

Result<std::string> look_up(engine::Runner& runner, const std::string& device,
                            const Location& where, const ImportOptions& options) {
  if (runner.simulated()) {
    const auto question = ask(runner, where, options.limit, options.retransmission);
    if (question.done) return question.line;
    return not_published_in_simulation(where, question.status);
  }
  const bool own = asks_itself(runner, where);
  const bool here = where.local_host || (!where.port_given && on_this_host(where.at.address));
  const Time until = options.limit > never - read_clock() ? never : read_clock() + options.limit;
  Error last;
  do {
    if (here) {
      const auto found = find_here({runner.port_facts().self.address, device}, where, own);
      if (found) return found->line;
      last = found.error();
      if (last.status != Status::not_found) return last;
      if (own) last = own_address(where);
    }
    // A question to this device itself would return only what the directory shows.
    if (where.local_host || (here && own)) {
      std::this_thread::sleep_for(look_again_after);
      continue;
    }
    const Duration left = std::max(until - read_clock(), Duration{});
    const auto question =
        ask(runner, where, here ? std::min(left, one_question) : left, options.retransmission);
    if (question.done) return question.line;
    last =
        own ? own_address(where) : not_answered(where, question.status, no_room_on(runner, where));
  } while (read_clock() < until);
  return last;
}

}  // namespace urma
