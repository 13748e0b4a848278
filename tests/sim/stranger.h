// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "drivers/sim/port.h"
#include "tests/catch.h"
#include "tests/sim/pair.h"
#include "tests/usual_offer.h"
#include "wire/icrc.h"
#include "wire/ta_chain.h"

namespace urma::test {

// A process that does not use this library, or that lies: a test writes its packets by hand.
class Stranger {
 public:
  static constexpr uint64_t a_life = 0x5742;
  static constexpr uint32_t mtu = 1024;

  // `as` is the EID that it claims; if it is zero, its address is the EID.
  Stranger(SimHosts& hosts, const std::string& address, const Eid& as = {})
      : hosts_(hosts),
        port_(opened(hosts, address)),
        eid_(as == Eid{} ? port_->facts().self.address : as) {}

  // Returns a valid OPEN.
  SetupMessage open() {
    SetupMessage message = usual_offer();
    message.from_life = life;
    message.from_tpn = 1000 + attempts_;
    message.first_psn = 1;
    message.attempt = ++attempts_;
    message.echoed_psn = acquaintance;
    message.features |= features;
    return message;
  }

  // Sends the message and returns the answer. If a cookie is asked for, repeats the message with
  // the cookie.
  std::optional<SetupMessage> ask(const Endpoint& to, SetupMessage message) {
    for (;;) {
      send(to, [&](TxFrame& frame) { write(frame, message); });
      std::optional<SetupMessage> answer;
      hear([&](const SetupMessage& said) {
        if (said.type != SetupType::question)
          answer = said;  // a question, of a device with several paths, is not an answer
      });
      if (!answer || answer->type != SetupType::retry) return answer;
      message.cookie = answer->cookie;
    }
  }

  // Sends any other set-up message unchanged.
  void say(const Endpoint& to, const SetupMessage& message) {
    send(to, [&](TxFrame& frame) { write(frame, message); });
  }
  // Returns the last set-up message that came.
  std::optional<SetupMessage> heard() { return listen(); }
  // Returns the last message of this type and drops all others.
  std::optional<SetupMessage> heard(SetupType type) {
    std::optional<SetupMessage> out;
    hear([&](const SetupMessage& message) {
      if (message.type == type) out = message;
    });
    return out;
  }
  // Counts the messages of this type that have come, and drops all messages.
  size_t count(SetupType type) {
    size_t out = 0;
    hear([&](const SetupMessage& message) { out += message.type == type; });
    return out;
  }

  // Makes a channel. Returns false if it was refused or not answered.
  bool connect(const Endpoint& to) {
    const SetupMessage opening = open();
    const auto answer = ask(to, opening);
    if (!answer || answer->type != SetupType::accept) return false;
    to_ = to;
    ours_ = opening.from_tpn;
    theirs_ = answer->from_tpn;
    their_life_ = answer->from_life;
    their_psn_ = answer->first_psn;
    psn_ = opening.first_psn;
    return true;
  }

  struct Sent {
    uint32_t slice = 0;  // the TPMSN
    bool last = true;
    bool fake = false;
    uint32_t skip = 0;  // number of PSNs that are left out before this packet
  };
  // Sends one packet on the channel.
  void send(const Sent& how, TaRequest request, std::span<const std::byte> data) {
    send(to_, [&](TxFrame& frame) {
      psn_ += how.skip;
      Rtph header{.last = how.last,
                  .opcode = static_cast<uint8_t>(TpOpcode::data),
                  .padding = static_cast<uint8_t>(-data.size() & 3),
                  .source = ours_,
                  .destination = theirs_,
                  .fake = how.fake,
                  .psn = psn_++,
                  .tpmsn = how.slice};
      header.emit(HeaderBytes<Rtph::size>(frame.head, Rtph::size));
      const std::span<std::byte> rest(frame.head + Rtph::size, TxFrame::head_room - Rtph::size);
      frame.head_bytes = static_cast<uint8_t>(Rtph::size + request.emit(rest));
      frame.pieces[0] = {data.data(), static_cast<uint32_t>(data.size())};
      frame.piece_count = data.empty() ? 0 : 1;
      frame.tail_bytes = header.padding;
      frame.tail.fill(std::byte{0});
    });
  }

  // Answers that this slice of a queue was executed, whether it has arrived or not.
  void answer(JettyId queue, uint32_t tassn) {
    send(to_, [&](TxFrame& frame) {
      const Rtph header{.last = true,
                        .opcode = static_cast<uint8_t>(TpOpcode::data),
                        .source = ours_,
                        .destination = theirs_,
                        .psn = psn_++};
      header.emit(HeaderBytes<Rtph::size>(frame.head, Rtph::size));
      const Atah said{
          .opcode = static_cast<uint8_t>(TaOpcode::answer), .tassn = tassn, .rc_id = number(queue)};
      said.emit(HeaderBytes<Atah::size>(frame.head + Rtph::size, Atah::size));
      frame.head_bytes = Rtph::size + Atah::size;
    });
  }

  // Sends a packet that belongs to no slice, as a sign of life. It is acknowledged and not
  // answered.
  void keep_alive() {
    send(to_, [&](TxFrame& frame) {
      const Rtph header{.last = true,
                        .opcode = static_cast<uint8_t>(TpOpcode::data),
                        .source = ours_,
                        .destination = theirs_,
                        .ack_request = true,
                        .fake = true,
                        .psn = psn_++};
      header.emit(HeaderBytes<Rtph::size>(frame.head, Rtph::size));
      frame.head_bytes = Rtph::size;
    });
  }

  // Returns the answers (ATAH) that have come since the last call.
  std::vector<Atah> answers() {
    std::vector<Atah> out;
    receive([&](std::span<const std::byte> packet) {
      const auto header = Rtph::parse(packet.first<Rtph::size>());
      if (!header || header->opcode != static_cast<uint8_t>(TpOpcode::data)) return;
      if (const auto answer = parse_response(packet.subspan(Rtph::size))) {
        out.push_back(answer->headers.base);
      }
    });
    return out;
  }

  // Claims this EID from now on.
  void claim(const Eid& eid) { eid_ = eid; }

  const Endpoint& at() const { return port_->facts().self; }

  uint32_t ours() const { return ours_; }
  uint32_t theirs() const { return theirs_; }
  uint64_t their_life() const { return their_life_; }
  uint32_t their_psn() const { return their_psn_; }  // the first PSN of the peer

  uint64_t life = a_life;
  uint32_t features = 0;         // in addition to the necessary ones
  std::vector<std::byte> paths;  // as emit_paths writes them
  uint32_t acquaintance = 1;
  Duration patience = std::chrono::microseconds(50);  // after each packet that it sends

 private:
  void write(TxFrame& frame, const SetupMessage& message) {
    write_setup(frame, {.source = eid_, .destination = {}}, message, 0, Carrier::unreliable, paths);
  }
  static std::unique_ptr<drivers::PacketPort> opened(SimHosts& hosts, const std::string& address) {
    drivers::sim::Port::Settings settings{};
    settings.address = parse_address(address).value();
    return std::move(*drivers::sim::Port::open(hosts.shared_network(), settings));
  }

  template <class Write>
  void send(const Endpoint& to, Write&& write) {
    TxFrame* frame = nullptr;
    REQUIRE(port_->lend({&frame, 1}) == 1);
    frame->head_bytes = 0;
    frame->piece_count = frame->tail_bytes = 0;
    write(*frame);
    frame->to = to;
    seal(*frame, port_->facts().self, prefix_);
    REQUIRE(port_->send({&frame, 1}, hosts_.now()) == 1);
    hosts_.run_for(patience);
  }

  template <class Read>
  void receive(Read&& read) {
    std::array<RxFrame, 64> frames;
    for (size_t count = 1; count > 0;) {
      count = port_->receive(frames, hosts_.now());
      for (const RxFrame& frame : std::span(frames).first(count)) {
        read(std::span(frame.data, frame.bytes - icrc_bytes));
      }
      port_->release(std::span(frames).first(count));
    }
  }

  // Returns the last set-up message that came.
  std::optional<SetupMessage> listen() {
    std::optional<SetupMessage> out;
    hear([&](const SetupMessage& message) { out = message; });
    return out;
  }

  template <class Function>
  void hear(Function&& function) {
    receive([&](std::span<const std::byte> packet) {
      if (const auto setup = parse_setup(packet)) function(setup->message);
    });
  }

  SimHosts& hosts_;
  std::unique_ptr<drivers::PacketPort> port_;
  Eid eid_;
  IcrcPrefix prefix_;
  uint32_t attempts_ = 0;
  Endpoint to_;
  uint32_t ours_ = 0;
  uint64_t their_life_ = 0;
  uint32_t their_psn_ = 0;
  uint32_t theirs_ = 0;
  uint32_t psn_ = 0;
};

}  // namespace urma::test
