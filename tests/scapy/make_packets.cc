// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "drivers/frame_pool.h"
#include "tests/scapy/packet_lines.h"
#include "tests/unit/random_headers.h"
#include "wire/icrc.h"

namespace urma::test {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : prng_(seed) {}

  void request(const char* kind, TaOpcode opcode) {
    begin();
    const OpcodeInfo& info = *find_opcode(static_cast<uint8_t>(opcode));
    TaRequest request{.base = random_header<Btah>(prng_),
                      .update = random_header<Udetah>(prng_),
                      .target = random_header<Mtetah>(prng_),
                      .memory = random_header<Maetah>(prng_),
                      .offset = random_header<Ofstetah>(prng_),
                      .notify = random_header<Ntfetah>(prng_),
                      .immediate = random_header<Immetah>(prng_),
                      .token = random_header<Tvetah>(prng_)};
    request.base.opcode = static_cast<uint8_t>(opcode);
    request.base.target_present = info.to_jetty;
    request.base.user_data = info.user_data;
    // INFERRED: in a Send_imm, the last 8 bytes of IMMETAH are zero.
    if (opcode == TaOpcode::send_immediate) {
      request.immediate.token = request.immediate.message_length = 0;
    }
    used_ += request.emit(head().subspan(used_));
    if (info.data) add_data();
    finish(kind, data_header(), layers_of(request, info));
  }

  void response(const char* kind, TaOpcode opcode) {
    begin();
    const OpcodeInfo& info = *find_opcode(static_cast<uint8_t>(opcode));
    TaResponse response{.base = random_header<Atah>(prng_),
                        .offset = random_header<Ofstetah>(prng_)};
    response.base.opcode = static_cast<uint8_t>(opcode);
    used_ += response.emit(head().subspan(used_));
    if (info.data) add_data();
    finish(kind, data_header(), layers_of(response, info));
  }

  void filler(const char* kind, bool keep_alive) {
    begin();
    Btah base = random_header<Btah>(prng_);
    base.opcode = 0;
    base.token_present = base.target_present = base.user_data = false;
    Rtph header = data_header();
    header.fake = true;
    if (keep_alive) return finish(kind, header, "");
    base.emit(head().subspan(used_).first<Btah::size>());
    used_ += Btah::size;
    finish(kind, header, " | btah" + fields_text(base));
  }

  void ack(const char* kind, uint8_t status) {
    begin();
    Rtph header = ack_header(TpOpcode::ack);
    header.status = status;
    finish(kind, header, "");
  }

  void selective_ack(const char* kind, uint32_t bit_count) {
    begin();
    Saetph holes{.max_received = random24(prng_), .bit_count = bit_count, .bits = {}};
    for (uint32_t word = 0; word < bit_count / 64; ++word) holes.bits[word] = random64(prng_);
    used_ += holes.emit(head().subspan(used_));
    finish(kind, ack_header(TpOpcode::selective_ack), " | saetph" + fields_text(holes));
  }

  // `name` is the layer's. A selective acknowledgement has holes behind its report.
  template <class Cetph>
  void report(const char* kind, const char* name, TpOpcode opcode, TpStatus status = TpStatus::ok) {
    begin();
    const auto report = random_header<Cetph>(prng_);
    report.emit(head().subspan(used_).first<Cetph::size>());
    used_ += Cetph::size;
    std::string layers = std::string(" | ") + name + fields_text(report);
    if (opcode == TpOpcode::selective_ack_cc) {
      const auto holes = random_header<Saetph>(prng_);
      used_ += holes.emit(head().subspan(used_));
      layers += " | saetph" + fields_text(holes);
    }
    Rtph header = ack_header(opcode);
    header.status = static_cast<uint8_t>(status);
    finish(kind, header, layers);
  }

  void setup(const char* kind, uint8_t type) {
    begin();
    const auto addresses = random_header<Addresses>(prng_);
    auto message = random_header<SetupMessage>(prng_);
    message.type = static_cast<SetupType>(type);
    write_setup(*frame_, addresses, message, coin(prng_) ? 0 : 1024 + 72);
    TaRequest send;
    send.base.opcode = static_cast<uint8_t>(TaOpcode::send);
    send.base.target_present = true;
    for (unsigned i = 0; i < frame_->piece_count; ++i) data_.resize(frame_->pieces[i].bytes);
    print(kind, " | utph" + fields_text(Utph{}) + " | addresses" + fields_text(addresses) +
                    layers_of(send, opcodes[0]) + " | setup" + fields_text(message));
  }

 private:
  std::span<std::byte> head() { return {frame_->head, TxFrame::head_room}; }

  void begin() {
    if (frame_ == nullptr) pool_.lend({&frame_, 1});
    const bool four = coin(prng_);
    for (Endpoint* end : {&route_.from, &route_.to}) {
      end->address = four ? ipv4(random8(prng_), random8(prng_), random8(prng_), random8(prng_))
                          : random_eid(prng_);
      end->port = coin(prng_) ? ub_port : random16(prng_);
    }
    used_ = Rtph::size;
    data_.clear();
    frame_->piece_count = frame_->tail_bytes = 0;
    frame_->to = route_.to;
  }

  // Adds data of any length, from none to a full packet, in two pieces.
  void add_data() {
    data_.resize(prng_.chance(0.1) ? 1024 : prng_.below(70));
    for (std::byte& byte : data_) byte = std::byte{random8(prng_)};
    const size_t first = prng_.below(data_.size() + 1);
    frame_->pieces[0] = {data_.data(), static_cast<uint32_t>(first)};
    frame_->pieces[1] = {data_.data() + first, static_cast<uint32_t>(data_.size() - first)};
    frame_->piece_count = 2;
  }

  Rtph data_header() {
    auto header = random_header<Rtph>(prng_);
    header.opcode = static_cast<uint8_t>(TpOpcode::data);
    header.next = NextHeader::transaction;
    header.fake = false;
    header.status = header.info = 0;
    return header;
  }

  Rtph ack_header(TpOpcode opcode) {
    Rtph header = data_header();
    header.opcode = static_cast<uint8_t>(opcode);
    header.last = header.ack_request = false;
    header.tpmsn = 0;
    return header;
  }

  void finish(const char* kind, Rtph header, const std::string& layers) {
    frame_->head_bytes = static_cast<uint8_t>(used_);
    frame_->tail_bytes = header.padding = static_cast<uint8_t>(-frame_->bytes() & 3);
    frame_->tail.fill(std::byte{0});
    header.emit(head().first<Rtph::size>());
    print(kind, " | rtph" + fields_text(header) + layers);
  }

  void print(const char* kind, const std::string& layers) {
    seal(*frame_, route_.from, prefix_);
    std::vector<std::byte> wire(frame_->bytes());
    drivers::flatten(*frame_, wire.data());
    FieldWriter route;
    visit_fields(route_, route);
    std::cout << "packet kind=" << kind << route.text() << layers << data_layer(data_)
              << " | wire hex=" << to_hex(wire) << "\n";
  }

  Prng prng_;
  drivers::FramePool pool_{1};
  TxFrame* frame_ = nullptr;
  IcrcPrefix prefix_;
  Route route_;
  size_t used_ = 0;  // used bytes of the head
  std::vector<std::byte> data_;
};

}  // namespace

void make_packets(uint64_t seed, uint64_t rounds) {
  Maker make(seed);
  for (uint64_t i = 0; i < rounds; ++i) {
    make.request("write", TaOpcode::write);
    make.request("write_imm", TaOpcode::write_immediate);
    make.request("write_notify", TaOpcode::write_notify);
    make.request("read", TaOpcode::read);
    make.request("send", TaOpcode::send);
    make.request("send_imm", TaOpcode::send_immediate);
    make.response("answer", TaOpcode::answer);
    make.response("read_response", TaOpcode::read_response);
    make.filler("filler", false);
    make.filler("keep_alive", true);
    make.ack("ack", static_cast<uint8_t>(TpStatus::ok));
    make.ack("nak", static_cast<uint8_t>(TpStatus::completer_error));
    make.selective_ack("sack64", 64);
    make.selective_ack("sack128", 128);
    make.selective_ack("sack256", 256);
    make.selective_ack("sack512", 512);
    make.selective_ack("sack1024", 1024);
    make.report<LdcpCetph>("ack_ldcp", "cetph_ldcp", TpOpcode::ack_cc);
    make.report<CaqmCetph>("ack_caqm", "cetph_caqm", TpOpcode::ack_cc);
    make.report<RateCetph>("ack_rate", "cetph_rate", TpOpcode::ack_cc);
    make.report<CaqmCetph>("nak_caqm", "cetph_caqm", TpOpcode::ack_cc, TpStatus::completer_error);
    make.report<LdcpCetph>("sack_ldcp", "cetph_ldcp", TpOpcode::selective_ack_cc);
    make.report<CaqmCetph>("sack_caqm", "cetph_caqm", TpOpcode::selective_ack_cc);
    make.report<RateCetph>("sack_rate", "cetph_rate", TpOpcode::selective_ack_cc);
    make.report<CnpCetph>("cnp", "cetph_cnp", TpOpcode::congestion);
    make.setup("open", 1);
    make.setup("retry", 2);
    make.setup("accept", 3);
    make.setup("refuse", 4);
    make.setup("reset", 5);
    make.setup("close", 6);
    make.setup("closed", 7);
  }
}

}  // namespace urma::test
