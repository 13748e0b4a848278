#pragma once

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
  visit("target", header.target);
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
