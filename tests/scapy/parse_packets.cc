// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "tests/scapy/packet_lines.h"
#include "wire/icrc.h"

namespace urma::test {
namespace {

std::optional<std::string> transaction_layers(const Rtph& header, std::span<const std::byte> rest) {
  if (header.fake) {
    if (rest.empty()) return "";
    if (rest.size() < Btah::size) return std::nullopt;
    const auto base = Btah::parse(rest.first<Btah::size>());
    if (!base) return std::nullopt;
    return " | btah" + fields_text(*base) + data_layer(rest.subspan(Btah::size));
  }
  const OpcodeInfo* info = rest.empty() ? nullptr : find_opcode(static_cast<uint8_t>(rest.front()));
  if (info != nullptr && !info->request) {
    const auto response = parse_response(rest);
    if (!response) return std::nullopt;
    return layers_of(response->headers, *info) + data_layer(response->data);
  }
  const auto request = parse_request(rest);
  if (!request) return std::nullopt;
  if (request->info == nullptr) return " | btah" + fields_text(request->headers.base);
  return layers_of(request->headers, *info) + data_layer(request->data);
}

template <class Header>
std::optional<std::string> layer(const char* name, std::span<const std::byte> rest) {
  if (rest.size() < Header::size) return std::nullopt;
  const auto header = Header::parse(rest.first<Header::size>());
  return std::string(" | ") + name + fields_text(header);
}

std::optional<std::string> report_layer(uint8_t opcode, ReportForm form,
                                        std::span<const std::byte> rest) {
  if (opcode == static_cast<uint8_t>(TpOpcode::congestion)) {
    return layer<CnpCetph>("cetph_cnp", rest);
  }
  switch (form) {
    case ReportForm::ldcp:
      return layer<LdcpCetph>("cetph_ldcp", rest);
    case ReportForm::caqm:
      return layer<CaqmCetph>("cetph_caqm", rest);
    case ReportForm::rate:
      return layer<RateCetph>("cetph_rate", rest);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> layers_of(std::span<const std::byte> packet, ReportForm form) {
  if ((packet.front() & std::byte{0x7f}) == std::byte{0}) {
    const auto setup = parse_setup(packet);
    if (!setup) return std::nullopt;
    return " | addresses" + fields_text(setup->addresses) + " | setup" +
           fields_text(setup->message);
  }
  if (packet.size() < Rtph::size) return std::nullopt;
  const auto header = Rtph::parse(packet.first<Rtph::size>());
  if (!header) return std::nullopt;
  auto rest = packet.subspan(Rtph::size);
  if (rest.size() < header->padding) return std::nullopt;
  rest = rest.first(rest.size() - header->padding);
  std::string text = " | rtph" + fields_text(*header);
  if (const size_t report_bytes = cetph_size(header->opcode); report_bytes > 0) {
    const auto report = report_layer(header->opcode, form, rest);
    if (!report) return std::nullopt;
    text += *report;
    rest = rest.subspan(report_bytes);
  }
  if (header->opcode == static_cast<uint8_t>(TpOpcode::selective_ack) ||
      header->opcode == static_cast<uint8_t>(TpOpcode::selective_ack_cc)) {
    const auto holes = Saetph::parse(rest);
    if (!holes) return std::nullopt;
    return text + " | saetph" + fields_text(*holes);
  }
  if (header->opcode != static_cast<uint8_t>(TpOpcode::data)) return text;
  const auto layers = transaction_layers(*header, rest);
  if (!layers) return std::nullopt;
  return text + *layers;
}

// Reads "packet name=value ...".
std::map<std::string, std::string> values_of(std::string_view layer) {
  std::map<std::string, std::string> values;
  for (size_t at = layer.find(' '); at != layer.npos; at = layer.find(' ', at + 1)) {
    const size_t equals = layer.find('=', at);
    values[std::string(layer.substr(at + 1, equals - at - 1))] =
        layer.substr(equals + 1, layer.find(' ', equals) - equals - 1);
  }
  return values;
}

}  // namespace

void parse_packets() {
  IcrcPrefix prefix;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t bar = line.find(" | ");
    Route route;
    ReportForm form{};
    FieldReader reader(values_of(std::string_view(line).substr(0, bar)));
    visit_fields(route, reader);
    reader("reports", form);
    const auto wire = from_hex(values_of(std::string_view(line).substr(bar + 3)).at("hex"));
    std::optional<std::string> layers;
    if (verify(wire, route.from, route.to, prefix) && wire.size() > icrc_bytes) {
      layers = layers_of(std::span(wire).first(wire.size() - icrc_bytes), form);
    }
    std::cout << (layers ? "packet" + *layers : "refused") << "\n";
  }
}

}  // namespace urma::test
