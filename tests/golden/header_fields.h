// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/cetph.h"
#include "wire/link.h"
#include "wire/nth.h"
#include "wire/setup_message.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma::test {

// Names every field of every header once: calls `visit("name", field)` for each, in order.

template <class Visit>
void visit_fields(Btah& header, Visit&& visit) {
  visit("opcode", header.opcode);
  visit("token_present", header.token_present);
  visit("target_present", header.target_present);
  visit("user_data", header.user_data);
  visit("tassn", header.tassn);
  visit("order", header.order);
  visit("solicited", header.solicited);
  visit("retry", header.retry);
  visit("allocate", header.allocate);
  visit("in_context", header.in_context);
  visit("rc_id", header.rc_id);
}

template <class Visit>
void visit_fields(Atah& header, Visit&& visit) {
  visit("opcode", header.opcode);
  visit("tassn", header.tassn);
  visit("status", header.status);
  visit("info", header.info);
  visit("rc_id", header.rc_id);
}

template <class Visit>
void visit_fields(Maetah& header, Visit&& visit) {
  visit("address", header.address);
  visit("token_id", header.token_id);
  visit("length", header.length);
}

template <class Visit>
void visit_fields(Mtetah& header, Visit&& visit) {
  uint32_t tc_type = header.target >> id_bits;
  uint32_t target = header.target % id_limit;
  visit("hint", header.hint);
  visit("tc_type", tc_type);
  visit("target", target);
  header.target = tc_type << id_bits | target;
}

template <class Visit>
void visit_fields(Tvetah& header, Visit&& visit) {
  visit("token", header.token);
}

template <class Visit>
void visit_fields(Ofstetah& header, Visit&& visit) {
  visit("kib", header.kib);
}

template <class Visit>
void visit_fields(Immetah& header, Visit&& visit) {
  visit("immediate", header.immediate);
  visit("token", header.token);
  visit("message_length", header.message_length);
}

template <class Visit>
void visit_fields(Udetah& header, Visit&& visit) {
  visit("update", header.update);
}

template <class Visit>
void visit_fields(Ntfetah& header, Visit&& visit) {
  visit("address", header.address);
  visit("token_id", header.token_id);
  visit("token", header.token);
  visit("value", header.value);
}

template <class Visit>
void visit_fields(Rtph& header, Visit&& visit) {
  visit("last", header.last);
  visit("opcode", header.opcode);
  visit("padding", header.padding);
  visit("next", header.next);
  visit("source", header.source);
  visit("destination", header.destination);
  visit("ack_request", header.ack_request);
  visit("fake", header.fake);
  visit("psn", header.psn);
  visit("status", header.status);
  visit("info", header.info);
  visit("tpmsn", header.tpmsn);
}

template <class Visit>
void visit_fields(Utph& header, Visit&& visit) {
  visit("padding", header.padding);
  visit("next", header.next);
}

template <class Visit>
void visit_fields(Ctph& header, Visit&& visit) {
  visit("opcode", header.opcode);
  visit("next", header.next);
}

template <class Visit>
void visit_fields(Addresses& header, Visit&& visit) {
  visit("upi", header.upi);
  visit("source", header.source);
  visit("destination", header.destination);
}

template <class Visit>
void visit_fields(Saetph& header, Visit&& visit) {
  visit("max_received", header.max_received);
  visit("bit_count", header.bit_count);
  visit("bits", header.bits);
}

template <class Visit>
void visit_fields(LdcpCetph& header, Visit&& visit) {
  visit("ack_seq", header.ack_seq);
  visit("ce_seq", header.ce_seq);
}

template <class Visit>
void visit_fields(CaqmCetph& header, Visit&& visit) {
  visit("ack_seq", header.ack_seq);
  visit("switch_queue", header.switch_queue);
  visit("last_hop", header.last_hop);
  visit("increase", header.increase);
  visit("marked", header.marked);
  visit("hint", header.hint);
}

template <class Visit>
void visit_fields(RateCetph& header, Visit&& visit) {
  visit("ack_seq", header.ack_seq);
  visit("switch_queue", header.switch_queue);
  visit("last_hop", header.last_hop);
  visit("increase", header.increase);
  visit("marked", header.marked);
  visit("switched", header.switched);
  visit("hint", header.hint);
}

template <class Visit>
void visit_fields(CnpCetph& header, Visit&& visit) {
  visit("congestion", header.congestion);
  visit("last_hop", header.last_hop);
}

template <class Visit>
void visit_fields(CaqmCci& header, Visit&& visit) {
  visit("last_hop", header.last_hop);
  visit("switched", header.switched);
  visit("enabled", header.enabled);
  visit("congested", header.congested);
  visit("increase", header.increase);
  visit("hint", header.hint);
}

template <class Visit>
void visit_fields(FecnRttCci& header, Visit&& visit) {
  visit("last_hop", header.last_hop);
  visit("timestamp", header.timestamp);
  visit("fecn", header.fecn);
}

template <class Visit>
void visit_fields(FecnCci& header, Visit&& visit) {
  visit("last_hop", header.last_hop);
  visit("fecn", header.fecn);
}

template <class Visit>
void visit_fields(Cna16Nth& header, Visit&& visit) {
  visit("source", header.source);
  visit("destination", header.destination);
  visit("cci", header.cci);
  visit("lbf", header.lbf);
  visit("service_level", header.service_level);
  visit("management", header.management);
  visit("next", header.next);
}

template <class Visit>
void visit_fields(Cna24Nth& header, Visit&& visit) {
  visit("source", header.source);
  visit("destination", header.destination);
  visit("cci", header.cci);
  visit("lbf", header.lbf);
  visit("service_level", header.service_level);
  visit("next", header.next);
}

template <class Visit>
void visit_fields(LinkWord& header, Visit&& visit) {
  visit("form", header.form);
  visit("shortest", header.shortest);
  visit("per_packet", header.per_packet);
  visit("hops", header.hops);
  visit("switch_queue", header.switch_queue);
}

template <class Visit>
void visit_fields(LinkControl& header, Visit&& visit) {
  visit("type", header.type);
  visit("cna", header.cna);
  visit("rated", header.rated);
  visit("refusal", header.refusal);
  visit("mtu_log2", header.mtu_log2);
  visit("lease_ms", header.lease_ms);
  visit("nonce", header.nonce);
  visit("cookie", header.cookie);
  visit("crc", header.crc);
}

template <class Visit>
void visit_fields(IpNth& header, Visit&& visit) {
  visit("cci", header.cci);
  visit("switch_queue", header.switch_queue);
  visit("permission", header.permission);
  visit("partition", header.partition);
}

template <class Visit>
void visit_fields(SetupMessage& header, Visit&& visit) {
  visit("type", header.type);
  visit("version", header.version);
  visit("reason", header.reason);
  visit("mtu_log2", header.mtu_log2);
  visit("features", header.features);
  visit("from_life", header.from_life);
  visit("to_life", header.to_life);
  visit("from_tpn", header.from_tpn);
  visit("to_tpn", header.to_tpn);
  visit("first_psn", header.first_psn);
  visit("attempt", header.attempt);
  visit("receive_window", header.receive_window);
  visit("tassn_window", header.tassn_window);
  visit("atomic_results", header.atomic_results);
  visit("reads", header.reads);
  visit("buffer_bytes", header.buffer_bytes);
  visit("echoed_psn", header.echoed_psn);
  visit("cookie", header.cookie);
}

}  // namespace urma::test
