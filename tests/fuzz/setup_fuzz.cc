// SPDX-License-Identifier: Apache-2.0
// One Transport, and a fuzzer that plays every other process of the network: it answers, asks,
// closes, resets and forges, in any order, with the right ICRC so that its messages are read. The
// fuzzer knows what a peer knows: the set-up messages that were sent to it.
//
// Oracle: no crash; each frame is counted once; there are never more channels than peers nor peers
// than allowed; `up` and `down` of each peer alternate; the sink gets packets only of peers that
// are up, and no more than it has room for; each request for a channel is answered in bounded time.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "tests/fuzz/input.h"
#include "tests/fuzz/packet.h"
#include "transport/transport.h"

namespace urma::fuzz {
namespace {

struct ById {
  bool operator()(PeerId a, PeerId b) const {
    return std::tie(a.index, a.generation) < std::tie(b.index, b.generation);
  }
};

// The layer above. It accepts all calls, and checks that they are allowed.
class Upper final : public transport::PacketSink, public transport::PacketSource {
 public:
  std::map<PeerId, transport::Channel*, ById> channels;
  std::set<PeerId, ById>
      asked;  // peers for which a channel was requested and that have no answer yet
  std::map<PeerId, int32_t, ById> awaited;
  bool room = true;
  uint64_t accepted = 0;
  uint64_t ups = 0;

  bool admits(const transport::Received&) override { return room; }
  void accept(const transport::Received& packet, Time) override {
    require(room, "no packet is accepted for which there is no room");
    ++accepted;
    require(packet.datagram || channels.contains(packet.peer),
            "packets come from peers that are up, or alone");
    for (const std::byte byte : packet.bytes) sum_ += static_cast<unsigned>(byte);
  }
  void delivered(PeerId peer, std::span<const transport::SliceRef> slices, Time) override {
    require(channels.contains(peer), "slices are delivered to peers that are up");
    require(!slices.empty(), "a call about delivered slices names some");
  }
  void up(PeerId peer, transport::Channel& channel, Time) override {
    require(channels.emplace(peer, &channel).second, "a channel comes up once");
    require(channel.facts().packet_bytes >= 1024 && channel.facts().tassn_window > 0 &&
                channel.facts().reads > 0,
            "a channel can carry something");
    asked.erase(peer);
    awaited.erase(peer);
    ++ups;
  }
  void down(PeerId peer, transport::Why, Time) override {
    channels.erase(peer);
    asked.erase(peer);
    awaited.erase(peer);
  }

  void write(std::span<transport::PacketSlot> packets) override {
    for (transport::PacketSlot& packet : packets) {
      if (packet.slice == transport::SliceRef{}) continue;
      packet.withdrawn = packet.slice.generation % 5 == 1;
      TxFrame& frame = *packet.frame;
      std::memset(frame.head + frame.head_bytes, 0x5a, 8);
      frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + 8);
    }
  }

 private:
  unsigned sum_ = 0;
};

// A channel, as its other end sees it.
struct Link {
  Endpoint at;
  uint32_t ours = 0;    // the TPN at the fuzzer's end
  uint32_t theirs = 0;  // the TPN at the Transport's end
  uint32_t next_psn = 0;
  uint32_t first_psn = 0;  // of the packets that the Transport sends
  uint64_t life = 0;
};

class Script {
 public:
  Script(const uint8_t* data, size_t size)
      : input_(data, size),
        entropy_(1),
        settings_(settings(input_.take())),
        transport_(settings_, entropy_, upper_) {
    pool_.lend(frames_);
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 400; ++steps) {
      step();
      check();
    }
    deliver();
    heal();
  }

 private:
  static constexpr uint64_t our_life = 0x1234;

  static Endpoint place(uint32_t n) {
    return {ipv4(127, 0, 0, static_cast<uint8_t>(n + 1)), static_cast<uint16_t>(4792 + n / 4)};
  }
  // Returns the EID of a peer. A peer that does not use the UB port has a random one.
  static Eid entity(uint32_t n) { return entity(place(n)); }
  static Eid entity(const Endpoint& at) {
    if (at.port == ub_port) return at.address;
    return {{std::byte{0xfd}, std::byte{0}, at.address.bytes[15], std::byte{0}, std::byte{0},
             std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
             std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}}};
  }
  // Returns the n-th address of this process.
  static Endpoint our_place(uint32_t n) {
    return n == 0 ? place(0) : Endpoint{ipv4(127, 0, 1, static_cast<uint8_t>(n)), ub_port};
  }
  // Returns the addresses of this process that `bits` names. The first one always exists.
  static PathList our_paths(uint32_t bits) {
    PathList out;
    for (uint32_t i = 0; i < most_paths; ++i) {
      if (((bits | 1) >> i & 1) != 0) out.set(i, our_place(i));
    }
    return out;
  }
  static transport::Settings settings(uint8_t choice) {
    return {.self = place(0),
            .paths = choice & 128 ? our_paths(0b11) : PathList{},
            .eid = entity(0),
            .life = Incarnation(our_life),
            .mtu = 1024u << (choice & 3),
            .retransmission = {.window_packets = choice & 4 ? 64u : 2048u},
            .buffer_bytes = 100'000,
            .controller = &congestion::controllers()[choice >> 3 & 1],
            .idle_timeout = std::chrono::milliseconds(choice & 64 ? 300 : 0),
            // The table has room for so many peers that half-open set-ups cause cookies, or for so
            // few that it is soon full.
            .peers = choice & 16 ? 80u : 6u,
            .packets = 256,
            .slices = 64};
  }

  void step() {
    switch (input_.below(12)) {
      case 0:
        return ask();
      case 1:
        return send();
      case 2:
      case 3:
      case 4:
        return input_.chance(6) ? storm() : queue(message());
      case 5:
      case 6:
        return queue(channel_packet());
      case 7:
        return queue(input_.chance(64) ? datagram() : anything());
      case 8:
        return advance(std::chrono::microseconds(100) * input_.take());
      case 9:
        return advance(std::chrono::milliseconds(8) * input_.take());
      case 10:
        return use_channel();
      case 11:
        if (input_.chance(200)) {
          upper_.room = input_.chance(192);
        } else if (!closed_) {
          closed_ = true;
          transport_.close(now_);
          // Pending requests for channels end without a notification here.
          upper_.asked.clear();
        }
    }
  }

  // ---- this process

  void ask() {
    const uint32_t who = input_.below(5);
    const Eid eid = input_.chance(128) ? entity(who) : Eid{};
    const auto life = Incarnation(input_.chance(128) ? 0 : 1 + input_.below(3));
    const PeerId peer = transport_.know(
        eid, place(who), who == 0 && input_.chance(128) ? Incarnation(our_life) : life);
    if (!peer) return;
    transport::Channel* channel = transport_.channel(peer, now_);
    if (channel == nullptr && !closed_ && transport_.knows(peer)) upper_.asked.insert(peer);
  }

  void use_channel() {
    if (upper_.channels.empty()) return;
    auto chosen = upper_.channels.begin();
    std::advance(chosen, input_.below(static_cast<uint32_t>(upper_.channels.size())));
    const auto [peer, channel] = *chosen;
    int32_t& awaited = upper_.awaited[peer];
    if (input_.chance(64)) send_datagram(peer);
    switch (input_.below(settings_.paths.count > 0 ? 4 : 3)) {
      case 0:
        channel->offer({1, ++generation_},
                       input_.chance(128) ? transport::Class::request : transport::Class::answer,
                       input_.take<uint16_t>());
        break;
      case 1:
        channel->expect_answers(1, now_);
        ++awaited;
        break;
      case 2:
        if (awaited > 0) channel->expect_answers(-1, now_), --awaited;
        break;
      case 3:
        transport_.announce_paths(our_paths(input_.take()), now_);
    }
  }

  void send_datagram(PeerId peer) {
    transport::Channel* const way = transport_.unreliable(peer);
    require(way != nullptr, "a peer that is up has a channel");
    const uint32_t bytes = 28 + input_.take();
    std::byte* const to = way->begin(bytes);
    if (to == nullptr) return;
    std::memset(to, 0x5a, bytes);
    way->end();
  }

  void advance(Duration by) {
    now_ += by;
    transport_.handle_timers(now_);
    send();
  }

  // Sends all that is due, and reads the set-up messages among it as their receivers would.
  void send() {
    if (!transport_.wants_to_send()) return;
    const size_t sent = transport_.fill(upper_, frames_, now_);
    require(sent <= frames_.size(), "no more frames are filled than were lent");
    sent_ += sent;
    if (input_.chance(200)) transport_.settled(sent_);
    for (TxFrame* frame : std::span(frames_).first(sent)) {
      const Packet packet = gathered(*frame, our_place(frame->path));
      IcrcPrefix prefix;
      require(verify(packet.bytes, packet.from, packet.to, prefix), "what is sent has its ICRC");
      require(packet.bytes.size() % 4 == 0, "what is sent is padded");
      const auto body = std::span(packet.bytes).first(packet.bytes.size() - icrc_bytes);
      if (const auto setup = parse_setup(body)) hear(packet.to, setup->message);
    }
  }

  void hear(const Endpoint& at, const SetupMessage& message) {
    heard_.push_back({at, message});
    if (heard_.size() > 8) heard_.erase(heard_.begin());
    if (message.type == SetupType::accept) {
      add_link({.at = at,
                .ours = message.to_tpn,
                .theirs = message.from_tpn,
                .next_psn = first_psn_of(message.to_tpn),
                .first_psn = message.first_psn,
                .life = message.to_life});
    }
  }

  void add_link(const Link& link) {
    links_.push_back(link);
    if (links_.size() > 6) links_.erase(links_.begin());
  }

  // ---- the other processes

  static uint32_t first_psn_of(uint32_t tpn) { return tpn * 77 % Psn::modulus; }

  struct Sent {
    Endpoint from;
    Addresses addresses;
    SetupMessage message;
  };

  Packet message() {
    Sent sent = right_message();
    while (input_.chance(60)) spoil(sent.message);
    if (input_.chance(30)) sent.from = place(input_.below(5));
    Addresses& addresses = sent.addresses;
    if (input_.chance(20)) addresses.upi = input_.take<uint16_t>();
    if (input_.chance(30)) addresses.destination = entity(input_.below(5));
    if (input_.chance(30)) addresses.source = input_.chance(128) ? Eid{} : entity(input_.below(5));
    return written(sent);
  }
  Packet written(const Sent& sent) const {
    std::array<std::byte, TxFrame::head_room> head;
    TxFrame frame;
    frame.head = head.data();
    std::array<std::byte, SetupMessage::most_paths_size> said;
    const size_t said_bytes = emit_paths(sent.message.paths, said);
    write_setup(frame, sent.addresses, sent.message, 0, Carrier::unreliable,
                std::span(said).first(said_bytes));
    Bytes bytes(frame.bytes());
    drivers::flatten(frame, bytes.data());
    return sealed(std::move(bytes), sent.from, settings_.self);
  }
  Sent right_message() {
    Sent sent = input_.chance(150) && !heard_.empty() ? reply() : fresh();
    sent.addresses.destination = settings_.eid;
    return sent;
  }

  // Sends many messages of one type that differ slightly.
  void storm() {
    Sent sent = right_message();
    const bool other_entities = input_.chance(128);
    for (int i = 0; i < 120; ++i) {
      ++sent.message.cookie;
      ++sent.message.from_tpn;
      if (sent.message.type == SetupType::open) sent.message.attempt = ++attempt_;
      if (other_entities) sent.addresses.source.bytes[1] = static_cast<std::byte>(i);
      packets_.push_back(written(sent));
      if (packets_.size() >= 32) deliver(), send();
    }
  }

  // Returns a correct answer to a message that was sent.
  Sent reply() {
    const auto& [at, asked] = heard_[input_.below(static_cast<uint32_t>(heard_.size()))];
    Sent out{
        .from = at, .addresses = {.source = entity(at), .destination = {}}, .message = plain()};
    SetupMessage& message = out.message;
    message.to_life = asked.from_life;
    message.to_tpn = asked.from_tpn;
    message.attempt = asked.attempt;
    switch (asked.type) {
      case SetupType::open:
        message.from_life = asked.to_life != 0 ? asked.to_life : 1 + input_.below(3);
        message.mtu_log2 = asked.mtu_log2;
        message.from_tpn = 100 + input_.below(4);
        message.first_psn = first_psn_of(message.from_tpn);
        message.type = std::array{SetupType::accept, SetupType::accept, SetupType::retry,
                                  SetupType::refuse}[input_.below(4)];
        message.cookie = input_.take<uint8_t>();
        message.reason = static_cast<SetupReason>(input_.below(5));
        if (message.type == SetupType::accept) {
          add_link({.at = at,
                    .ours = message.from_tpn,
                    .theirs = asked.from_tpn,
                    .next_psn = message.first_psn,
                    .first_psn = asked.first_psn,
                    .life = message.from_life});
        }
        break;
      case SetupType::retry:
        message = last_open_;
        message.cookie = asked.cookie;
        break;
      case SetupType::question:
      case SetupType::paths:
        message.type = asked.type == SetupType::paths ? SetupType::noted : SetupType::answer;
        message.from_tpn = asked.to_tpn;
        message.from_life = asked.to_life;
        message.cookie = asked.cookie;
        break;
      case SetupType::close:
        message.type = SetupType::closed;
        if (input_.chance(200)) message.cookie = asked.cookie;
        break;
      default:
        message.type = SetupType::close;
        message.from_tpn = asked.to_tpn;
        message.from_life = asked.to_life;
        message.reason = any_end();
        break;
    }
    return out;
  }

  // Returns a message that does not answer a question.
  Sent fresh() {
    const uint32_t who = 1 + input_.below(4);
    Sent out{.from = place(who),
             .addresses = {.source = entity(who), .destination = {}},
             .message = plain()};
    if (input_.chance(64)) out.addresses.source.bytes[1] = static_cast<std::byte>(input_.take());
    SetupMessage& message = out.message;
    message.from_life = 1 + input_.below(3);
    message.to_life = input_.chance(128) ? 0 : our_life;
    if (links_.empty() || input_.chance(150)) {
      message.mtu_log2 = static_cast<uint8_t>(10 + input_.below(4));
      message.from_tpn = 1 + input_.below(8);
      message.first_psn = first_psn_of(message.from_tpn);
      message.attempt = ++attempt_;
      if (settings_.paths.count > 0 && input_.chance(128)) {
        message.features |= feature_paths | feature_new_paths;
        message.paths = some_paths();
      }
      last_open_ = message;
      return out;
    }
    const Link& link = links_[input_.below(static_cast<uint32_t>(links_.size()))];
    out.from = link.at;
    out.addresses.source = entity(link.at);
    message.type = std::array{SetupType::reset, SetupType::close, SetupType::closed,
                              SetupType::refuse}[input_.below(4)];
    message.from_tpn = link.ours;
    message.to_tpn = link.theirs;
    message.to_life = our_life;
    message.from_life = link.life;
    message.echoed_psn = link.first_psn + input_.below(4);
    message.reason = any_end();
    if (settings_.paths.count > 0 && input_.chance(64)) {
      message.type = SetupType::paths;
      message.features |= feature_paths;
      message.paths = some_paths();
    }
    return out;
  }

  // Addresses of other processes, including empty entries.
  PathList some_paths() {
    PathList out;
    out.number = input_.take();
    for (uint8_t bits = input_.take() | 1, i = 0; i < most_paths; ++i) {
      if ((bits >> i & 1) != 0) out.set(i, place(1 + i % 4));
    }
    return out;
  }

  SetupReason any_end() {
    return std::array{SetupReason::leaving, SetupReason::none, SetupReason::idle,
                      SetupReason::idle}[input_.below(4)];
  }

  static SetupMessage plain() {
    SetupMessage message;
    message.receive_window = 512;
    message.tassn_window = 256;
    message.reads = 8;
    message.buffer_bytes = 50'000;
    return message;
  }

  // Gives one field an arbitrary value.
  void spoil(SetupMessage& message) {
    const uint32_t kind = input_.below(4);
    const uint64_t value = kind == 0   ? 0
                           : kind == 1 ? ~uint64_t{0}
                           : kind == 2 ? input_.take<uint8_t>()
                                       : input_.take<uint64_t>();
    switch (input_.below(18)) {
      case 0:
        message.type = static_cast<SetupType>(1 + value % 11);
        break;
      case 1:
        message.version = static_cast<uint8_t>(value);
        break;
      case 2:
        message.reason = static_cast<SetupReason>(value);
        break;
      case 3:
        message.mtu_log2 = static_cast<uint8_t>(value);
        break;
      case 4:
        message.features = static_cast<uint32_t>(value);
        message.paths = some_paths();
        break;
      case 5:
        message.from_life = value;
        break;
      case 6:
        message.to_life = value;
        break;
      case 7:
        message.from_tpn = static_cast<uint32_t>(value);
        break;
      case 8:
        message.to_tpn = static_cast<uint32_t>(value);
        break;
      case 9:
        message.first_psn = static_cast<uint32_t>(value);
        break;
      case 10:
        message.attempt = static_cast<uint32_t>(value);
        break;
      case 11:
        message.receive_window = static_cast<uint16_t>(value);
        break;
      case 12:
        message.tassn_window = static_cast<uint16_t>(value);
        break;
      case 13:
        message.atomic_results = static_cast<uint16_t>(value);
        break;
      case 14:
        message.reads = static_cast<uint16_t>(value);
        break;
      case 15:
        message.buffer_bytes = static_cast<uint32_t>(value);
        break;
      case 16:
        message.echoed_psn = static_cast<uint32_t>(value);
        break;
      case 17:
        message.cookie = value;
        break;
    }
  }

  Packet channel_packet() {
    if (links_.empty()) return anything();
    Link& link = links_[input_.below(static_cast<uint32_t>(links_.size()))];
    Rtph header{.last = input_.chance(200),
                .opcode = std::array<uint8_t, 4>{1, 1, 2, 5}[input_.below(4)],
                .source = link.ours,
                .destination = link.theirs,
                .ack_request = input_.chance(64),
                .fake = input_.chance(32),
                .tpmsn = input_.take<uint8_t>()};
    const bool data = header.opcode == 1;
    if (data) {
      header.psn = link.next_psn++ % Psn::modulus;
      if (input_.chance(40)) header.psn = (header.psn + input_.take()) % Psn::modulus;
    } else {
      header.psn = (link.first_psn + input_.take()) % Psn::modulus;
      if (input_.chance(64)) header.status = 3;
    }
    if (input_.chance(16)) header.opcode = input_.take() & 127;
    if (input_.chance(16)) header.psn = input_.take<uint32_t>() % Psn::modulus;
    if (input_.chance(16)) header.next = static_cast<NextHeader>(input_.below(16));
    if (input_.chance(16)) header.info = input_.take() & 31;
    Bytes body(Rtph::size);
    header.emit(HeaderBytes<Rtph::size>(body.data(), Rtph::size));
    const auto rest = input_.bytes(input_.take());
    body.insert(body.end(), rest.begin(), rest.end());
    return sealed(std::move(body), input_.chance(16) ? place(input_.below(5)) : link.at,
                  settings_.self);
  }

  // Returns a datagram that resembles a set-up message.
  Packet datagram() {
    const Endpoint from = place(input_.below(5));
    const Addresses addresses{
        .upi = input_.chance(20) ? 2u : 1u,
        .source = input_.chance(30) ? entity(input_.below(5)) : entity(from),
        .destination = input_.chance(30) ? entity(input_.below(5)) : settings_.eid};
    TaRequest send;
    send.base.opcode = static_cast<uint8_t>(input_.below(2));
    send.base.token_present = true;
    send.target.target = 1 + input_.below(4);
    std::array<std::byte, Utph::size + Addresses::size + 80> head_bytes{};
    static_assert(TaRequest::max_size <= 80);
    const std::span<std::byte> head(head_bytes);
    Utph{.padding = static_cast<uint8_t>(input_.below(4))}.emit(head.first<Utph::size>());
    addresses.emit(head.subspan<Utph::size, Addresses::size>());
    send.emit(head.subspan(Utph::size + Addresses::size));
    const auto part = head.first(16 + input_.below(static_cast<uint32_t>(head.size()) - 15));
    return sealed(Bytes(part.begin(), part.end()), from, settings_.self);
  }

  Packet anything() {
    const auto body = input_.bytes(input_.take());
    const Endpoint from = place(input_.below(5));
    if (input_.chance(200)) {
      return sealed(Bytes(body.begin(), body.end()), from, settings_.self);
    }
    return {Bytes(body.begin(), body.end()), from, settings_.self};
  }

  void queue(Packet packet) {
    packets_.push_back(std::move(packet));
    if (packets_.size() >= 64 || input_.chance(160)) deliver();
  }

  void deliver() {
    std::vector<RxFrame> frames;
    for (const Packet& packet : packets_) frames.push_back(received(packet));
    transport_.receive(frames, now_);
    delivered_ += packets_.size();
    packets_.clear();
  }

  // ---- conditions that must hold

  void check() {
    const transport::Counters& counters = transport_.counters();
    const uint64_t seen = counters.received + counters.bad_icrc;
    require(seen <= delivered_ && delivered_ - seen <= counters.malformed,
            "each frame is received, malformed, or has a wrong ICRC");
    require(transport_.counts().channels <= transport_.counts().peers,
            "a peer has at most one channel");
    require(transport_.counts().peers <= settings_.peers, "there are no more peers than allowed");
    require(transport_.counts().channels == upper_.channels.size(),
            "what is up is what the layer above was told");
    require(counters.channels_made == upper_.ups, "each channel was told once");
    for (const auto& [peer, channel] : upper_.channels) {
      const auto facts = transport_.facts(peer);
      require(facts && facts->connected, "a peer that is up is connected");
    }
  }

  // Lets everything end by itself: the other processes send nothing from here on.
  void heal() {
    const Time until = now_ + 2 * settings_.setup_timeout;
    for (int steps = 0; now_ < until; ++steps) {
      require(steps < 20'000, "time goes on");
      // A transport that cannot send because there are no frames retries at each tick. The test
      // does not run all of them.
      const Time next = std::min(transport_.next_deadline(), until);
      now_ = std::max(next, now_ + std::chrono::microseconds(100));
      transport_.handle_timers(now_);
      send();
      check();
    }
    require(upper_.asked.empty(), "each request for a channel is answered");
    if (closed_) require(transport_.closed(), "a goodbye ends");
  }

  Input input_;
  SeededEntropy entropy_;
  Upper upper_;
  const transport::Settings settings_;
  transport::Transport transport_;
  drivers::FramePool pool_{32};
  std::array<TxFrame*, 32> frames_{};
  Time now_{std::chrono::seconds(100)};
  std::vector<Packet> packets_;
  uint64_t sent_ = 0;
  uint64_t delivered_ = 0;
  std::vector<std::pair<Endpoint, SetupMessage>> heard_;
  std::vector<Link> links_;
  SetupMessage last_open_ = plain();
  uint32_t attempt_ = 0;
  uint32_t generation_ = 0;
  bool closed_ = false;
};

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::Script(data, size).run();
  return 0;
}
