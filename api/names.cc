#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "api/handles.h"
#include "base/clock.h"
#include "base/failed.h"
#include "base/interfaces.h"
#include "base/loopback.h"
#include "base/socket_address.h"
#include "engine/copy_choice.h"
#include "engine/retransmission_choice.h"

namespace urma {
namespace {

constexpr std::string_view scheme = "urma://";
constexpr Duration look_again_after = std::chrono::milliseconds(10);
constexpr Duration one_question = std::chrono::milliseconds(250);

// A parsed urma://HOST[:PORT]/NAME.
struct Location {
  std::string host;
  std::string name;
  bool local_host = false;  // "localhost": names of this user, at any address within reach
  bool port_given = false;
  Endpoint at;
};

Error bad_location(std::string_view what, std::string_view why) {
  return failed(Status::invalid_argument, "\"", what.substr(0, 120), "\" ", why)
      .fix("urma://localhost/NAME, urma://ADDRESS/NAME or urma://ADDRESS:PORT/NAME");
}

// Returns the address of a host, from the system's resolver.
Result<Eid> resolve(const std::string& host, bool v4) {
  addrinfo hints{};
  hints.ai_family = v4 ? AF_INET : AF_INET6;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int why = getaddrinfo(host.c_str(), nullptr, &hints, &found); why != 0) {
    return failed(Status::not_found, "the host \"", host, "\" is not known: ", gai_strerror(why))
        .fix("check its spelling, or write its address (", v4 ? "IPv4" : "IPv6",
             ", as this device has)");
  }
  const Eid eid = from_sockaddr(*found->ai_addr).address;
  freeaddrinfo(found);
  return eid;
}

Result<Location> parse_location(std::string_view what, const Endpoint& self) {
  std::string_view rest = what.substr(scheme.size());
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return bad_location(what, "has no /NAME");
  Location out;
  out.host = rest.substr(0, slash);
  out.name = rest.substr(slash + 1);
  if (!engine::valid_name(out.name)) {
    return bad_location(what, "has an invalid name: a name is 1 to 64 of A-Z a-z 0-9 . _ -");
  }
  if (out.host == "localhost") {
    out.local_host = true;
    return out;
  }
  if (Result<Endpoint> numeric = parse_endpoint(out.host)) {
    out.at = *numeric;
    const bool bracket = out.host.starts_with('[');
    out.port_given = bracket ? out.host.find("]:") != std::string::npos
                             : std::count(out.host.begin(), out.host.end(), ':') == 1;
    return out;
  }
  const size_t colon = out.host.rfind(':');
  const std::string name = out.host.substr(0, colon);
  if (name.empty()) return bad_location(what, "has no host");
  if (colon != std::string::npos) {
    // parse_endpoint checks the port.
    Result<Endpoint> port = parse_endpoint("0.0.0.0" + out.host.substr(colon));
    if (!port) return bad_location(what, "has no valid port");
    out.at.port = port->port;
    out.port_given = true;
  } else {
    out.at.port = ub_port;
  }
  if (in_window(self.address)) {
    return failed(Status::invalid_argument, "\"", name,
                  "\" is another host, and this device is in a window of shared memory")
        .fix("open udp: to reach it, or import urma://localhost/", out.name,
             " from the same window");
  }
  Result<Eid> address = resolve(name, self.is_ipv4());
  if (!address) return address.error();
  out.at.address = *address;
  return out;
}

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
  question.line.reserve(engine::NameService::line_bytes);
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

// Searches this user's directory and asks the network, in turn, until the limit. `device`: the
// device string by which processes of this host reach this device.
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

Error out_of_reach(const Endpoint& at, const Endpoint& self) {
  const std::string cure = in_window(at.address) ? "cxl:, or cxl:PATH of the window of this address"
                           : at.is_ipv4()        ? "udp:"
                                                 : "udp:[ADDRESS], an IPv6 address of this host";
  return failed(Status::invalid_argument, "import: ", at, " cannot be reached from a device on ",
                self)
      .fix("open ", cure);
}

// Returns the descriptor line that is published at `what`, a urma:// location.
Result<std::string> locate(engine::Runner& runner, const std::string& device, std::string_view what,
                           const ImportOptions& options) {
  const Endpoint& self = runner.port_facts().self;
  Result<Location> where = parse_location(what, self);
  if (!where) return where.error();
  if (!where->local_host && !may_reach(self.address, where->at.address)) {
    return out_of_reach(where->at, self);
  }
  return look_up(runner, device, *where, options);
}

Imported imported_from(const Descriptor& descriptor, PeerId peer) {
  Imported imported;
  if (const auto& segment = descriptor.segment) {
    imported.segment = {.peer = peer,
                        .address = segment->address,
                        .bytes = segment->bytes,
                        .token_id = segment->id,
                        .token = segment->token,
                        .rights = segment->rights,
                        .atomics = segment->atomics};
  }
  if (const auto& jetty = descriptor.jetty) {
    imported.jetty = {.peer = peer, .id = jetty->id, .token = jetty->token};
  }
  return imported;
}

// Measures how to copy large works, if the segment is large enough for them.
void choose_copy(engine::Runner& runner, const RemoteSegment& segment) {
  if (!segment.mapped() || segment.bytes < engine::least_past_caches) return;
  const uint64_t from = engine::past_caches_from();
  runner.call([&](engine::Engine& engine, Time) {
    engine.transactions().initiator().copy_past_caches_from(from);
    return true;
  });
}

Result<Imported> import_line(engine::Runner& runner, const std::string& line,
                             const std::optional<Retransmission>& mode) {
  Result<Descriptor> descriptor = parse_descriptor(line);
  if (!descriptor) return descriptor.error();
  const Endpoint& self = runner.port_facts().self;
  if (!may_reach(self.address, descriptor->at.address)) return out_of_reach(descriptor->at, self);
  PeerId peer;
  runner.call([&](engine::Engine& engine, Time now) {
    peer = engine.transport().know(descriptor->eid, descriptor->at, descriptor->life,
                                   descriptor->also);
    if (peer && mode) engine.transport().choose(peer, *mode, now);
    return true;
  });
  if (peer) {
    Imported imported = imported_from(*descriptor, peer);
    if (mode) imported.warning = engine::warning(*mode, runner.port_facts());
    choose_copy(runner, imported.segment);
    return imported;
  }
  return Error{Status::no_resources,
               "import: this device knows as many peers as Limits::peers allows. Fix: open the "
               "device with a larger Limits::peers"};
}

Error foreign(const std::string& what) {
  return failed(Status::invalid_argument, "publish: this ", what,
                " was moved from, or belongs to another device")
      .fix("publish one that this device made");
}

}  // namespace

Result<Imported> Device::import(std::string_view what, const ImportOptions& options) {
  return guarded("import", [&]() -> Result<Imported> {
    if (auto able = usable(state_, "import"); !able) return able.error();
    engine::Runner& runner = *state_->runner;
    if (options.limit < Duration{}) {
      return Error{Status::invalid_argument,
                   "import: ImportOptions::limit is negative. Fix: give the time to wait for a "
                   "name, or 0s to look once"};
    }
    const std::optional<Retransmission>& mode = options.retransmission;
    if (const std::string why = mode ? engine::objection(*mode, runner.port_facts()) : "";
        !why.empty()) {
      return Error{Status::invalid_argument,
                   "import: retransmission " + std::string(name(*mode)) + ": " + why};
    }
    if (!what.starts_with(scheme)) return import_line(runner, std::string(what), mode);
    const Result<std::string> found = locate(runner, state_->reach, what, options);
    if (!found) return found.error();
    return import_line(runner, *found, mode);
  });
}

Result<void> Device::publish(std::string_view name, const Segment& segment, const Jetty& jetty,
                             const Audience& audience) {
  return guarded("publish", [&]() -> Result<void> {
    if (auto able = usable(state_, "publish"); !able) return able.error();
    if (!segment.state_ || segment.state_->runner != state_->runner) return foreign("segment");
    if (!jetty.state_ || jetty.state_->source.runner != state_->runner) return foreign("Jetty");
    Descriptor descriptor = describe_device(*state_->runner);
    descriptor.segment = segment.state_->describe();
    descriptor.jetty = jetty.state_->describe();
    return publish_line(name, to_string(descriptor), audience);
  });
}

Result<void> Device::publish(std::string_view name, const Segment& segment,
                             const Audience& audience) {
  return guarded("publish", [&]() -> Result<void> {
    if (auto able = usable(state_, "publish"); !able) return able.error();
    if (!segment.state_) return foreign("segment");
    return publish_line(name, segment.descriptor(), audience);
  });
}

Result<void> Device::publish(std::string_view name, const Jetty& jetty, const Audience& audience) {
  return guarded("publish", [&]() -> Result<void> {
    if (auto able = usable(state_, "publish"); !able) return able.error();
    if (!jetty.state_) return foreign("Jetty");
    return publish_line(name, jetty.descriptor(), audience);
  });
}

Result<void> Device::publish_line(std::string_view name, const std::string& line,
                                  const Audience& audience) {
  engine::Runner& runner = *state_->runner;
  if (!engine::valid_name(name)) {
    return failed(Status::invalid_argument, "publish: \"", name.substr(0, 80),
                  "\" is not a valid name")
        .fix("use 1 to 64 of A-Z a-z 0-9 . _ -, and do not start with a dot");
  }
  // Everything is allocated here, because a pass must not allocate; it only moves the entry.
  engine::Publications one;
  const auto& [key, publication] =
      *one.emplace(name,
                   engine::Publication{.line = line, .audience = audience, .device = state_->reach})
           .first;
  engine::NameFiles::Held held;
  if (!runner.simulated()) {
    Result<engine::NameFiles::Held> made =
        engine::NameFiles::of_this_user().publish(runner.port_facts().self, key, publication);
    if (!made) return made.error();
    held = std::move(*made);
  }
  {
    const std::lock_guard lock(state_->published_mutex);
    state_->published.insert_or_assign(key, std::move(held));
  }
  runner.call([&](engine::Engine& engine, Time) {
    engine.names().published().publish(one);
    return true;
  });
  return {};
}

Result<void> Device::unpublish(std::string_view name) {
  if (auto able = usable(state_, "unpublish"); !able) return able.error();
  engine::Runner& runner = *state_->runner;
  {
    const std::lock_guard lock(state_->published_mutex);
    const auto found = state_->published.find(name);
    if (found == state_->published.end()) {
      return guarded("unpublish", [&]() -> Result<void> {
        return failed(Status::not_found, "unpublish: this device does not publish \"", name, "\"")
            .fix("unpublish only names that this device publishes, and each once");
      });
    }
    state_->published.erase(found);
  }
  runner.call([&](engine::Engine& engine, Time) {
    engine.names().published().unpublish(name);
    return true;
  });
  return {};
}

}  // namespace urma
