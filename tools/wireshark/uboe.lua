-- SPDX-License-Identifier: Apache-2.0
-- Unified Bus over UDP (UBoE) for Wireshark and tshark: what docs/protocol.md says, as a tree.
--
-- Each header is a table of its fields, drawn once: `uboe.HEADER.FIELD` is what a display filter
-- calls it, with the names of tests/golden/wire_vectors.txt, and `uboe.HEADER` finds packets that
-- have one. No byte is read before it is known to have been captured.

local uboe = Proto("uboe", "Unified Bus over Ethernet")

uboe.prefs.verify = Pref.bool("Verify the ICRC", true,
  "Compute each packet's ICRC. It takes 0.1 ms for each KiB.")

local UB_PORT = 4792
-- For CTP in captures of liburma: CTP packets are in memory that processes share, never on UDP.
local CTP_PORT = 4793
-- Between a device and a switch (docs/protocol.md, section 17).
local LINK_PORT = 4794
local ICRC_BYTES = 4
local PSNS = 0x1000000

-- ---- the meaning of numbers

local TP_OPCODES = { [0] = "UTP", [1] = "data", [2] = "TPACK", [3] = "TPACK-CC", [5] = "TPSACK",
  [6] = "TPSACK-CC", [8] = "CNP" }
local CTP_OPCODES = { [0] = "packet", [1] = "CNP", [2] = "filler" }
local NEXT = { [0] = "transaction", [1] = "UPIH32 and EIDH256", [2] = "UPIH16 and EIDH40",
  [3] = "CIPH" }
local RESPONSES = { [0] = "success", [1] = "receiver not ready", [2] = "page fault",
  [3] = "completer error", [5] = "not yet placed" }
local COMPLETER_ERRORS = { [0] = "PSN error", [1] = "unsupported request", [2] = "remote abort",
  [3] = "withdrawn", [4] = "no room" }
local ORDERS = { [0] = "none", [1] = "relaxed", [2] = "strong" }
local TA_OPCODES = { [0x00] = "Send", [0x01] = "Send_imm", [0x03] = "Write", [0x04] = "Write_imm",
  [0x05] = "Write_notify", [0x06] = "Read", [0x07] = "CAS", [0x08] = "Swap",
  [0x09] = "Atomic_store", [0x0a] = "Atomic_load", [0x0b] = "Fetch_add", [0x0c] = "Fetch_sub",
  [0x0d] = "Fetch_and", [0x0e] = "Fetch_or", [0x0f] = "Fetch_xor", [0x10] = "Management",
  [0x11] = "TAACK", [0x12] = "Read_response", [0x13] = "Atomic_response", [0x14] = "Write_be",
  [0x15] = "Prefetch_tgt", [0x17] = "Writeback", [0x18] = "Writeback_be" }
local UPDATES = { [0] = "ADD", [1] = "CLR", [2] = "EOR", [3] = "SET", [4] = "SMAX", [5] = "SMIN",
  [6] = "UMAX", [7] = "UMIN" }
local SETUP_TYPES = { [1] = "OPEN", [2] = "RETRY", [3] = "ACCEPT", [4] = "REFUSE", [5] = "RESET",
  [6] = "CLOSE", [7] = "CLOSED", [8] = "QUESTION", [9] = "ANSWER", [10] = "PATHS",
  [11] = "NOTED" }
local SETUP_REASONS = { [0] = "none", [1] = "version", [2] = "restarted", [3] = "no resources",
  [4] = "leaving", [5] = "idle" }
-- Forms of a CETPH, as set-up has them.
local FORMS = { [0] = "none", [1] = "LDCP", [2] = "CNP", [3] = "C-AQM", [4] = "rate" }
local CNP_CONGESTION = { [0] = "none", [1] = "minor", [3] = "severe" }
local LINK_FORMS = { [0] = "message", [7] = "CNA of 24 bits" }
local LINK_MESSAGES = { [1] = "attach", [2] = "challenge", [3] = "attached", [4] = "refused",
  [5] = "detach", [6] = "unknown" }
local LINK_REFUSALS = { [0] = "none", [1] = "another device has the CNA", [2] = "no port is free" }
local CHECKSUM = { [0] = "bad", [1] = "good", [2] = "unverified" }

-- ---- headers

local all_fields = {}
local function field(make, abbreviation, ...)
  local one = make("uboe." .. abbreviation, ...)
  all_fields[#all_fields + 1] = one
  return one
end

-- The position of a field in its header: first byte, bytes, mask (nil means all of them), and how
-- it is shown.
local MAKERS = { [1] = ProtoField.uint8, [2] = ProtoField.uint16, [3] = ProtoField.uint24,
  [4] = ProtoField.uint32, [8] = ProtoField.uint64 }
local function number(key, label, at, bytes, mask, names, shown)
  return { key = key, label = label, at = at, bytes = bytes, make = function(abbreviation)
    return field(MAKERS[bytes], abbreviation, label, shown or base.DEC, names, mask)
  end }
end
local function hex(key, label, at, bytes, mask)
  return number(key, label, at, bytes, mask, nil, base.HEX)
end
local function flag(key, label, at, mask)
  return { key = key, label = label, at = at, bytes = 1, make = function(abbreviation)
    return field(ProtoField.bool, abbreviation, label, 8, nil, mask)
  end }
end
local function eid(key, label, at)
  return { key = key, label = label, at = at, bytes = 16, make = function(abbreviation)
    return field(ProtoField.ipv6, abbreviation, label)
  end }
end

local function header(key, title, size, fields)
  local whole = field(ProtoField.none, key, title)
  for _, one in ipairs(fields) do one.field = one.make(key .. "." .. one.key) end
  return { title = title, size = size, whole = whole, fields = fields }
end

local RTPH = header("rtph", "RTPH, reliable transport", 16, {
  flag("last", "Last of its slice", 0, 0x80),
  number("opcode", "TPOpcode", 0, 1, 0x7f, TP_OPCODES),
  number("version", "TPVer", 1, 1, 0xc0),
  number("padding", "Padding", 1, 1, 0x30),
  number("next", "NLP", 1, 1, 0x0f, NEXT),
  hex("source", "SrcTPN", 2, 3),
  hex("destination", "DstTPN", 5, 3),
  flag("ack_request", "A: acknowledge at once", 8, 0x80),
  flag("fake", "F: filler or keep-alive", 8, 0x40),
  number("psn", "PSN", 9, 3),
  number("status", "RSPST", 12, 1, 0xe0, RESPONSES),
  number("info", "RSPINFO", 12, 1, 0x1f),
  number("tpmsn", "TPMSN", 13, 3),
})
local UTPH = header("utph", "UTPH, unreliable transport", 16, {
  number("opcode", "TPOpcode", 0, 1, nil, TP_OPCODES),
  number("version", "TPVer", 1, 1, 0xc0),
  number("padding", "Padding", 1, 1, 0x30),
  number("next", "NLP", 1, 1, 0x0f, NEXT),
})
local CTPH = header("ctph", "CTPH, compact transport", 1, {
  number("opcode", "TPOpcode", 0, 1, 0xc0, CTP_OPCODES),
  number("padding", "Padding", 0, 1, 0x30),
  number("next", "NLP", 0, 1, 0x0f, NEXT),
})
local ADDRESSES = header("addresses", "UPIH32 and EIDH256", 36, {
  hex("upi", "UPI, the partition", 1, 3),
  eid("source", "Source EID", 4),
  eid("destination", "Destination EID", 20),
})
local SAETPH = header("saetph", "SAETPH, selective acknowledgement", 4, {
  number("bitmap_size", "BitMapSize", 0, 1, 0x07),
  number("max_received", "MaxRcvPSN", 1, 3),
})
local LINK_WORD = header("link_word", "Word, in place of LPH", 4, {
  number("form", "CFG", 0, 1, 0xf0, LINK_FORMS),
  flag("shortest", "RT: shortest paths only", 0, 0x08),
  flag("per_packet", "RT: each packet may take another path", 0, 0x04),
  number("version", "Version", 1, 1),
  number("hops", "Switches that have forwarded it", 2, 1),
  number("switch_queue", "UBQ, code of the time in queues of switches", 3, 1, 0xfc),
})
local LINK_CONTROL = header("link_control", "Message between a device and its switch", 28, {
  number("type", "Type", 0, 1, nil, LINK_MESSAGES),
  number("cna", "CNA", 1, 3),
  flag("rated", "Attach: asks for the rate of the port; attached: the cookie has it", 4, 0x80),
  number("refusal", "Reason of a refusal", 4, 1, 0x7f, LINK_REFUSALS),
  number("mtu_log2", "MTU, log2", 5, 1),
  number("lease_ms", "Lease, ms", 6, 2),
  hex("nonce", "Nonce of the device", 8, 8),
  hex("cookie", "Cookie of the switch; attached: its port meters, and the rate of the port", 16, 8),
  hex("crc", "CRC", 24, 4),
})
local NTH_CNA24 = header("nth_cna24", "NTH, CNA of 24 bits", 10, {
  number("source", "SCNA", 0, 3),
  number("destination", "DCNA", 3, 3),
  hex("cci", "CCI", 6, 2),
  number("cci_mode", "Mode of CCI", 6, 1, 0xe0),
  flag("last_hop", "Loc: at the last switch", 6, 0x10),
  flag("switched", "S: a UB switch forwarded it", 6, 0x08),
  flag("enabled", "Enable: switches may edit", 6, 0x04),
  flag("congested", "C: it met congestion", 6, 0x02),
  flag("increase", "I: asks for an increase", 6, 0x01),
  number("hint", "Hint", 7, 1),
  number("lbf", "LBF", 8, 1),
  number("service_level", "SL", 9, 1, 0xf0),
  number("next", "NLP", 9, 1, 0x07),
})
local CETPH_LDCP = header("cetph_ldcp", "CETPH, congestion (LDCP)", 8, {
  number("ack_seq", "Ack_Seq, units of 2 bytes", 0, 4),
  number("ce_seq", "Ce_Seq, units of 2 bytes", 4, 4),
})
local CETPH_CAQM = header("cetph_caqm", "CETPH, congestion (C-AQM)", 8, {
  number("ack_seq", "Ack_Seq, units of 2 bytes", 0, 4),
  number("switch_queue", "UBQ, code of the time in queues of switches", 4, 1, 0xfc),
  flag("last_hop", "Loc: at the last switch", 4, 0x02),
  flag("increase", "I: increases were granted", 4, 0x01),
  number("marked", "C: packets that met congestion", 5, 1),
  number("hint", "Hint, the sum that was granted", 6, 2),
})
local CETPH_RATE = header("cetph_rate", "CETPH, congestion (rate)", 8, {
  number("ack_seq", "Ack_Seq, units of 2 bytes", 0, 4),
  number("switch_queue", "UBQ, code of the time in queues of switches", 4, 1, 0xfc),
  flag("last_hop", "Loc: at the last switch", 4, 0x02),
  flag("increase", "I: increases were granted", 4, 0x01),
  number("marked", "C: packets that met congestion", 5, 1),
  flag("switched", "S: a UB switch forwarded packets", 6, 0x80),
  number("hint", "Granted, or marks of ECN and least rate code", 6, 2, 0x7fff),
})
local CETPH_CNP = header("cetph_cnp", "CETPH, congestion (CNP)", 16, {
  number("congestion", "ECN", 0, 1, 0xc0, CNP_CONGESTION),
  flag("last_hop", "Loc: at the last switch", 0, 0x20),
})
local BTAH = header("btah", "BTAH, request", 8, {
  number("opcode", "TAOpcode", 0, 1, nil, TA_OPCODES),
  number("version", "TAver", 1, 1, 0xc0),
  number("ee_bits", "EE_bits", 1, 1, 0x30),
  flag("token_present", "TV_EN: TVETAH is there", 1, 0x08),
  flag("poison", "Poison", 1, 0x04),
  flag("user_data", "UD_Flag: UDETAH is there", 1, 0x01),
  number("tassn", "INI_TASSN", 2, 2),
  flag("no_taack", "No_TAACK", 4, 0x80),
  flag("completion_order", "ODR: completions in order", 4, 0x40),
  number("order", "ODR", 4, 1, 0x30, ORDERS),
  flag("target_present", "MT_EN: MTETAH is there", 4, 0x08),
  flag("solicited", "FCE: raise an event", 4, 0x04),
  flag("retry", "Retry: the slice was sent before", 4, 0x02),
  flag("allocate", "Alloc: makes a sequence context", 4, 0x01),
  flag("e_bit", "E_bit", 5, 0x40),
  flag("in_context", "INI_RC_Type 10: the target keeps the order", 5, 0x20),
  hex("rc_id", "INI_RC_ID, the queue", 5, 3, 0x0fffff),
})
local ATAH = header("atah", "ATAH, answer", 8, {
  number("opcode", "TAOpcode", 0, 1, nil, TA_OPCODES),
  number("version", "TAver", 1, 1, 0xc0),
  flag("sv", "SV", 1, 0x08),
  flag("poison", "Poison", 1, 0x04),
  number("tassn", "INI_TASSN", 2, 2),
  number("status", "RSPST", 4, 1, 0xe0, RESPONSES),
  number("info", "RSPINFO", 4, 1, 0x1f),
  number("rc_type", "INI_RC_Type", 5, 1, 0x30),
  hex("rc_id", "INI_RC_ID, the queue", 5, 3, 0x0fffff),
})
local MAETAH = header("maetah", "MAETAH, memory", 16, {
  hex("address", "Address of this packet's bytes", 0, 8),
  hex("token_id", "TokenID, the segment", 8, 3, 0x0fffff),
  number("length", "Length of the slice", 12, 4),
})
local MTETAH = header("mtetah", "MTETAH, target", 4, {
  number("hint", "Hint", 0, 1),
  number("tc_type", "TGT_TC_Type", 1, 1, 0x30),
  hex("target", "TGT_TC_ID, the Jetty", 1, 3, 0x0fffff),
})
local TVETAH = header("tvetah", "TVETAH, token", 4, { hex("token", "TokenValue", 0, 4) })
local OFSTETAH = header("ofstetah", "OFSTETAH, offset", 4, {
  number("kib", "Offset of this packet's bytes in the slice, KiB", 1, 3),
})
local IMMETAH = header("immetah", "IMMETAH, immediate", 16, {
  hex("immediate", "Imm", 0, 8),
  hex("token", "Imm_TokenValue, the Jetty's", 8, 4),
  number("message_length", "Msg_Length, of the whole work", 12, 4),
})
local NTFETAH = header("ntfetah", "NTFETAH, notification", 24, {
  hex("address", "Address", 0, 8),
  hex("token_id", "Notify_TokenID", 8, 3, 0x0fffff),
  hex("token", "Notify_TokenValue", 12, 4),
  hex("value", "Notify_Data", 16, 8),
})
local UDETAH = header("udetah", "UDETAH, how an atomic updates", 4, {
  number("update", "Sub-operation", 1, 1, 0xf0, UPDATES),
})
local SETUP = header("setup", "Set-up", 64, {
  number("type", "Type", 0, 1, nil, SETUP_TYPES),
  number("version", "Version", 1, 1),
  number("reason", "Reason", 2, 1, nil, SETUP_REASONS),
  number("mtu_log2", "MTU, as a power of two", 3, 1),
  hex("features", "Features", 4, 4),
  hex("from_life", "Life of the sender", 8, 8),
  hex("to_life", "Life of the receiver", 16, 8),
  hex("from_tpn", "TPN of the sender", 24, 4),
  hex("to_tpn", "TPN of the receiver, or how it numbers the sender", 28, 4),
  number("first_psn", "First PSN of the sender", 32, 4),
  number("attempt", "Attempt", 36, 4),
  number("receive_window", "Out-of-order window, packets", 40, 2),
  number("tassn_window", "TASSN window", 42, 2),
  number("atomic_results", "Results of atomics kept", 44, 2),
  number("reads", "Reads answered at a time", 46, 2),
  number("buffer_bytes", "Bytes that can be unread", 48, 4),
  number("echoed_psn", "PSN that is answered, or how the sender numbers the receiver", 52, 4),
  hex("cookie", "Cookie", 56, 8),
})

local REQUESTS = {
  [0x00] = { target = true, data = true, chain = { MTETAH, OFSTETAH } },
  [0x01] = { target = true, data = true, chain = { MTETAH, OFSTETAH, IMMETAH } },
  [0x03] = { data = true, chain = { MAETAH } },
  [0x04] = { target = true, data = true, chain = { MTETAH, MAETAH, IMMETAH } },
  [0x05] = { data = true, chain = { MAETAH, NTFETAH } },
  [0x06] = { chain = { MAETAH } },
}
for atomic = 0x07, 0x0f do REQUESTS[atomic] = { data = true, chain = { MAETAH } } end
for _, update in ipairs({ 0x09, 0x0a }) do
  REQUESTS[update] = { update = true, data = true, chain = { UDETAH, MAETAH } }
end
local ANSWERS = {
  [0x11] = { chain = {} },
  [0x12] = { data = true, chain = { OFSTETAH } },
  [0x13] = { data = true, chain = {} },
}

-- ---- fields outside the headers

local bit_count = field(ProtoField.uint16, "saetph.bit_count", "Bits of the bitmap", base.DEC)
local bitmap = field(ProtoField.bytes, "saetph.bitmap", "Bitmap")
local received = field(ProtoField.uint24, "saetph.received", "Received PSN", base.DEC)
local missing = field(ProtoField.uint24, "saetph.missing", "Missing PSN", base.DEC)
local data = field(ProtoField.bytes, "data", "Data")
local data_bytes = field(ProtoField.uint32, "data_bytes", "Bytes of data", base.DEC)
local padding = field(ProtoField.bytes, "padding", "Padding")
local undecoded = field(ProtoField.bytes, "undecoded", "Not decoded")
local icrc = field(ProtoField.uint32, "icrc", "ICRC", base.HEX)
local icrc_status = field(ProtoField.uint8, "icrc.status", "ICRC status", base.DEC, CHECKSUM)
-- The PSN of either header that has one.
local psn = field(ProtoField.uint24, "psn", "PSN", base.DEC)
local tpn = field(ProtoField.uint24, "tpn", "TPN, of either end", base.HEX)
local tassn = field(ProtoField.uint16, "tassn", "TASSN", base.DEC)
local rc_id = field(ProtoField.uint24, "rc_id", "Queue", base.HEX)
local opcode = field(ProtoField.uint8, "opcode", "TAOpcode", base.DEC, TA_OPCODES)

uboe.fields = all_fields

local malformed = ProtoExpert.new("uboe.malformed", "Malformed", expert.group.MALFORMED,
  expert.severity.ERROR)
local bad_icrc = ProtoExpert.new("uboe.icrc.bad", "Bad ICRC", expert.group.CHECKSUM,
  expert.severity.ERROR)
local unknown = ProtoExpert.new("uboe.unknown", "Not known to this dissector",
  expert.group.UNDECODED, expert.severity.WARN)
local refused = ProtoExpert.new("uboe.refused", "Refused", expert.group.RESPONSE_CODE,
  expert.severity.WARN)
local again = ProtoExpert.new("uboe.again", "Not yet, or once more", expert.group.SEQUENCE,
  expert.severity.NOTE)
uboe.experts = { malformed, bad_icrc, unknown, refused, again }

-- ---- ICRC

local ipv4_source, ipv4_destination = Field.new("ip.src"), Field.new("ip.dst")
local ipv6_source, ipv6_destination = Field.new("ipv6.src"), Field.new("ipv6.dst")

-- Returns the source and destination bytes of the innermost IP header; nothing if there is none.
local function addresses()
  local from, to, place
  for _, pair in ipairs({ { ipv4_source, ipv4_destination }, { ipv6_source, ipv6_destination } }) do
    local froms, tos = { pair[1]() }, { pair[2]() }
    local source, destination = froms[#froms], tos[#tos]
    if source and destination and (not place or source.offset > place) then
      from, to, place = source.range:raw(), destination.range:raw(), source.offset
    end
  end
  return from, to
end

local bxor, band, rshift = bit.bxor, bit.band, bit.rshift

-- CRC-32 of four bytes at a time, by the two halves of a word, and of the last bytes one by one.
-- The tables are made when first needed.
local low_half, high_half, bytewise
local function make_tables()
  local one = {}
  for i = 0, 255 do
    local crc = i
    for _ = 1, 8 do
      crc = band(crc, 1) == 1 and bxor(rshift(crc, 1), 0xedb88320) or rshift(crc, 1)
    end
    one[i] = crc
  end
  -- Returns `crc` after this many zero bytes.
  local function on(crc, bytes)
    for _ = 1, bytes do crc = bxor(rshift(crc, 8), one[band(crc, 0xff)]) end
    return crc
  end
  low_half, high_half, bytewise = {}, {}, one
  local first, second, third, fourth = {}, {}, {}, {}
  for i = 0, 255 do
    first[i], second[i] = on(i, 4), on(one[i], 2)
    third[i], fourth[i] = on(one[i], 1), one[i]
  end
  for i = 0, 0xffff do
    local low, high = i % 256, math.floor(i / 256)
    low_half[i] = bxor(first[low], second[high])
    high_half[i] = bxor(third[low], fourth[high])
  end
end

local function crc32(text)
  if not low_half then make_tables() end
  local crc = 0xffffffff
  local low, high, unpack = low_half, high_half, Struct.unpack
  for at = 1, #text - 3, 4 do
    local word = bxor(crc, (unpack("<I4", text, at)))
    crc = bxor(low[band(word, 0xffff)], high[rshift(word, 16)])
  end
  for at = #text - #text % 4 + 1, #text do
    crc = bxor(rshift(crc, 8), bytewise[band(bxor(crc, text:byte(at)), 0xff)])
  end
  return bxor(crc, 0xffffffff)
end

-- The headers before the packet as the ICRC covers them: fields that a path may change are ones,
-- and IPv4's ID is 0 whatever was sent.
local function canonical_headers(from, to, pinfo, bytes)
  local length = bytes + 8
  local udp = Struct.pack(">I2I2I2I2", pinfo.src_port, pinfo.dst_port, length, 0xffff)
  if #from == 4 then
    return Struct.pack(">I1I1I2I2I2I1I1I2", 0x45, 0xff, length + 20, 0, 0x4000, 0xff, 17, 0xffff)
      .. from .. to .. udp
  end
  return Struct.pack(">I4I2I1I1", 0x6ff00000, length, 17, 0xff) .. from .. to .. udp
end

-- Returns whether the ICRC is good or bad, or nothing if that cannot be known, and the expected
-- value. `before`: the headers in front, if they are not those of IP and UDP.
local function check_icrc(tvb, pinfo, before)
  local bytes = tvb:reported_len()
  if tvb:len() < bytes or bytes % 4 ~= 0 or bytes < ICRC_BYTES or bytes > 65527 then return nil end
  if not before then
    local from, to = addresses()
    if not from then return nil end
    before = canonical_headers(from, to, pinfo, bytes)
  end
  local crc = crc32(before .. tvb:raw(0, bytes - ICRC_BYTES))
  local sent = tvb(bytes - ICRC_BYTES, ICRC_BYTES):le_uint()
  return bxor(crc, sent) == 0, crc
end

-- ---- the forms of CETPH that the ends of a channel have agreed on

local CETPHS = { [1] = CETPH_LDCP, [3] = CETPH_CAQM, [4] = CETPH_RATE }
-- `offers`: what OPEN and ACCEPT offer, by the TPN of their sender. `agreed`: the form, by the TPN
-- of the end that is sent the CETPH.
local offers, agreed = {}, {}
function uboe.init() offers, agreed = {}, {} end

local function offered_by(features)
  if band(features, 0x20) == 0 then return { gives = 0, wants = 0 } end
  return { gives = band(rshift(features, 16), 0xff), wants = band(rshift(features, 24), 0x0f) }
end

local function agreed_form(sender, receiver)
  local form = sender.wants
  if form < 1 or form > 4 or band(rshift(receiver.gives, form - 1), 1) == 0 then return 0 end
  return form
end

local function note_offer(is_open, from, to, features)
  local offer = offered_by(features)
  if is_open then
    offers[from] = offer
  elseif offers[to] and from ~= 0 and to ~= 0 then
    agreed[to] = agreed_form(offers[to], offer)
    agreed[from] = agreed_form(offer, offers[to])
  end
  return offer
end

-- ---- a packet, from the front to the end

local Packet = {}
Packet.__index = Packet

-- `stop` is where the part that the headers describe ends, according to the original length of the
-- packet.
local function packet_of(tvb, pinfo, tree)
  return setmetatable({ tvb = tvb, pinfo = pinfo, tree = tree, at = 0, stop = tvb:reported_len(),
    words = {} }, Packet)
end

function Packet:say(text, ...) self.words[#self.words + 1] = string.format(text, ...) end
function Packet:left() return self.stop - self.at end

function Packet:complain(expert_info, text)
  self.tree:add_proto_expert_info(expert_info, text)
  if expert_info == malformed then self:say("[malformed: %s]", text) end
  return nil
end

-- Returns whether the next bytes belong to the packet and were captured.
function Packet:has(bytes, what)
  if bytes > self:left() then return self:complain(malformed, what .. " is cut off") end
  if self.at + bytes <= self.tvb:len() then return true end
  self:say("[not captured: %s]", what)
  return nil
end

-- Adds a header and continues behind it. Returns its tree and the position of its first byte, or
-- nothing.
function Packet:take(which)
  if not self:has(which.size, which.title) then return nil end
  local at = self.at
  local item = self.tree:add(which.whole, self.tvb(at, which.size))
  for _, one in ipairs(which.fields) do
    item:add(one.field, self.tvb(at + one.at, one.bytes))
  end
  self.at = at + which.size
  return item, at
end

function Packet:byte(at) return self.tvb(at, 1):uint() end
function Packet:also(which, at, bytes, value)
  self.tree:add(which, self.tvb(at, bytes), value):set_hidden()
end

-- Adds the rest, as far as it was captured, as one field.
function Packet:rest(which)
  local bytes = math.min(self:left(), self.tvb:len() - self.at)
  if bytes > 0 then self.tree:add(which, self.tvb(self.at, bytes)) end
  self.at = self.stop
end

function Packet:take_data(allowed)
  local bytes = self:left()
  if not allowed then
    if bytes > 0 then self:complain(malformed, "data where none belongs") end
    return self:rest(undecoded)
  end
  self.tree:add(data_bytes, self.tvb(0, 0), bytes):set_generated()
  self:say("%d bytes", bytes)
  self:rest(data)
end

-- ---- transaction layer

function Packet:take_base(which)
  local item, at = self:take(which)
  if not item then return nil end
  local code = self:byte(at)
  self:also(opcode, at, 1, code)
  self:also(tassn, at + 2, 2, self.tvb(at + 2, 2):uint())
  self:also(rc_id, at + 5, 3, self.tvb(at + 5, 3):bitfield(4, 20))
  self:say("%s TASSN %d of 0x%x", TA_OPCODES[code] or string.format("opcode 0x%02x", code),
    self.tvb(at + 2, 2):uint(), self.tvb(at + 5, 3):bitfield(4, 20))
  if self.tvb(at + 1, 1):bitfield(0, 2) ~= 0 then
    return self:complain(malformed, "another TAver")
  end
  return item, at, code
end

function Packet:take_answer()
  local item, at, code = self:take_base(ATAH)
  if not item then return self:rest(undecoded) end
  local about = ANSWERS[code]
  if not about then
    self:complain(unknown, "an answer of this kind")
    return self:rest(undecoded)
  end
  local status = self.tvb(at + 4, 1):bitfield(0, 3)
  local info = self.tvb(at + 4, 1):bitfield(3, 5)
  if status == 1 or status == 2 then
    self:complain(again, string.format("%s, wait %d us", RESPONSES[status], 2 * 2 ^ info))
    self:say("%s", RESPONSES[status])
  elseif status == 3 then
    self:complain(refused, COMPLETER_ERRORS[info] or "completer error")
    self:say("%s", COMPLETER_ERRORS[info] or "completer error")
  elseif info > 0 then
    self:say("and %d more", info)
  end
  for _, one in ipairs(about.chain) do
    if not self:take(one) then return self:rest(undecoded) end
  end
  self:take_data(about.data)
end

-- `alone`: the packet is filler, which has only this header.
function Packet:take_request(alone, is_setup)
  local item, at, code = self:take_base(BTAH)
  if not item then return self:rest(undecoded) end
  local flags = self:byte(at + 4)
  if band(flags, 0x02) ~= 0 then
    self:complain(again, "the slice was sent before")
    self:say("retry")
  end
  if alone then return self:take_data(false) end
  local about = REQUESTS[code]
  if not about or (band(self:byte(at + 1), 0x01) ~= 0) ~= (about.update or false) then
    self:complain(unknown, about and "UDETAH, there or not" or "a request of this kind")
    return self:rest(undecoded)
  end
  if (band(flags, 0x08) ~= 0) ~= (about.target or false) then
    self:complain(malformed, "MT_EN does not fit the opcode")
    return self:rest(undecoded)
  end
  local target
  for _, one in ipairs(about.chain) do
    local _, place = self:take(one)
    if not place then return self:rest(undecoded) end
    if one == MTETAH then target = self.tvb(place + 1, 3):bitfield(4, 20) end
  end
  local token = band(self:byte(at + 1), 0x08) ~= 0
  if token and not self:take(TVETAH) then return self:rest(undecoded) end
  if is_setup and code == 0 and target == 0 and not token then return self:take_setup() end
  self:take_data(about.data)
end

function Packet:take_setup()
  local item, at = self:take(SETUP)
  if not item then return self:rest(undecoded) end
  local kind = self:byte(at)
  self.words = {}
  self:say("%s", SETUP_TYPES[kind] or "set-up of an unknown type")
  if not SETUP_TYPES[kind] then
    self:complain(malformed, "a set-up of an unknown type")
  elseif kind == 1 or kind == 3 then
    local mtu = self:byte(at + 3)
    self:say("TPN 0x%06x PSN %d MTU %s", self.tvb(at + 24, 4):uint(), self.tvb(at + 32, 4):uint(),
      mtu <= 16 and string.format("%d", 2 ^ mtu) or "2^" .. mtu)
    local offer = note_offer(kind == 1, self.tvb(at + 24, 4):uint(), self.tvb(at + 28, 4):uint(),
      self.tvb(at + 4, 4):uint())
    if offer.wants > 0 then self:say("wants reports: %s", FORMS[offer.wants] or "unknown form") end
  elseif kind == 4 then
    local reason = SETUP_REASONS[self:byte(at + 2)] or "for an unknown reason"
    self:complain(refused, reason)
    self:say("%s", reason)
  elseif kind == 5 then
    self:complain(refused, "no such channel")
  end
  if self:left() > 0 then self:say("and %d bytes of padding", self:left()) end
  self:rest(padding)
end

local function is_answer(code) return ANSWERS[code] ~= nil end

function Packet:take_transaction(is_setup)
  if not self:has(1, "the transaction") then return end
  if is_answer(self:byte(self.at)) then return self:take_answer() end
  self:take_request(false, is_setup)
end

-- Takes what follows a transport header; `next_header` is its NLP.
function Packet:take_next(next_header, is_setup)
  if next_header == 1 then
    if not self:take(ADDRESSES) then return self:rest(undecoded) end
  elseif next_header ~= 0 then
    self:complain(unknown, "this NLP")
    return self:rest(undecoded)
  end
  self:take_transaction(is_setup and next_header == 1)
end

-- ---- transport layer

function Packet:take_bitmap(first_psn)
  local item, at = self:take(SAETPH)
  if not item then return self:rest(undecoded) end
  local size = self.tvb(at, 1):bitfield(5, 3)
  if size > 4 then
    self:complain(malformed, "a bitmap of no known size")
    return self:rest(undecoded)
  end
  local bytes = 8 * 2 ^ size
  item:add(bit_count, self.tvb(at, 1), bytes * 8):set_generated()
  if not self:has(bytes, "the bitmap") then return self:rest(undecoded) end
  local map = item:add(bitmap, self.tvb(self.at, bytes))
  local newest = (self.tvb(at + 1, 3):uint() - first_psn) % PSNS
  local holes = 0
  for byte = 0, bytes - 1 do
    local place = self.tvb(self.at + byte, 1)
    local value = place:uint()
    for one = 0, 7 do
      local number = byte * 8 + one
      if band(value, 2 ^ one) ~= 0 then
        map:add(received, place, (first_psn + number) % PSNS):set_generated()
      elseif number < newest then
        holes = holes + 1
        map:add(missing, place, (first_psn + number) % PSNS):set_generated()
      end
    end
  end
  self:say("%d missing", holes)
  self.at = self.at + bytes
  self:take_data(false)
end

-- Takes a CETPH that is sent to this TPN. If no OPEN and ACCEPT in the capture say which form it
-- has, it is shown in all forms.
function Packet:take_report(to)
  local form = CETPHS[agreed[to] or 0]
  if form then return self:take(form) end
  local first = self.at
  for _, one in pairs(CETPHS) do
    self.at = first
    if not self:take(one) then return nil end
  end
  return true
end

function Packet:take_acknowledgement(kind, at)
  local first_psn = self.tvb(at + 9, 3):uint()
  local is_error = (kind == 2 or kind == 3) and self:byte(at + 12) == 0x60
  self:say("%s PSN %d", is_error and TP_OPCODES[kind]:gsub("ACK", "NAK") or TP_OPCODES[kind],
    first_psn)
  if is_error then self:complain(again, "a PSN error: it wants all from there on") end
  local reports = kind == 3 or kind == 6
  if reports and not self:take_report(self.tvb(at + 5, 3):uint()) then
    return self:rest(undecoded)
  end
  if kind >= 5 then return self:take_bitmap(first_psn) end
  self:take_data(false)
end

function Packet:take_notification()
  self:say("CNP")
  if not self:take(CETPH_CNP) then return self:rest(undecoded) end
  self:take_data(false)
end

function Packet:take_rtp()
  local item, at = self:take(RTPH)
  if not item then return self:rest(undecoded) end
  local kind = self.tvb(at, 1):bitfield(1, 7)
  local flags = self:byte(at + 8)
  self:also(psn, at + 9, 3, self.tvb(at + 9, 3):uint())
  self:also(tpn, at + 2, 3, self.tvb(at + 2, 3):uint())
  self:also(tpn, at + 5, 3, self.tvb(at + 5, 3):uint())
  if self.tvb(at + 1, 1):bitfield(0, 2) ~= 0 then
    self:complain(malformed, "another TPVer")
    return self:rest(undecoded)
  end
  if kind == 2 or kind == 3 or kind == 5 or kind == 6 then
    return self:take_acknowledgement(kind, at)
  end
  if kind == 8 then return self:take_notification() end
  if kind ~= 1 then
    self:say("%s", TP_OPCODES[kind] or "unknown")
    self:complain(unknown, "this TPOpcode")
    return self:rest(undecoded)
  end
  if band(flags, 0x40) ~= 0 then
    self:take_filler()
  else
    self:take_next(self.tvb(at + 1, 1):bitfield(4, 4), false)
  end
  self:say("PSN %d%s%s", self.tvb(at + 9, 3):uint(), band(self:byte(at), 0x80) ~= 0 and " last" or
    "", band(flags, 0x80) ~= 0 and " A" or "")
end

function Packet:take_filler()
  self:say(self:left() > 0 and "filler" or "keep-alive")
  if self:left() > 0 then self:take_request(true, false) end
end

function Packet:take_utp()
  local item, at = self:take(UTPH)
  if not item then return self:rest(undecoded) end
  self:say("UTP")
  if self.tvb(at + 1, 1):bitfield(0, 2) ~= 0 then
    self:complain(malformed, "another TPVer")
    return self:rest(undecoded)
  end
  self:take_next(self.tvb(at + 1, 1):bitfield(4, 4), true)
end

function Packet:take_ctp()
  local item, at = self:take(CTPH)
  if not item then return end
  local first = self:byte(at)
  local kind = rshift(first, 6)
  self:say("CTP")
  if kind == 3 or band(first, 0x30) ~= 0 then
    self:complain(malformed, kind == 3 and "an unknown TPOpcode" or "padding where none belongs")
    return self:rest(undecoded)
  end
  if kind == 1 then
    self:complain(unknown, "CNP")
    return self:rest(undecoded)
  end
  if kind == 2 then return self:take_filler() end
  self:take_next(band(first, 0x0f), true)
end

-- ---- the whole

local function add_icrc(packet, tvb, pinfo)
  local bytes = tvb:reported_len()
  if bytes < ICRC_BYTES or tvb:len() < bytes then return end
  local item = packet.tree:add_le(icrc, tvb(bytes - ICRC_BYTES, ICRC_BYTES))
  local good, right
  if uboe.prefs.verify then good, right = check_icrc(tvb, pinfo, packet.before) end
  local status = good == nil and 2 or good and 1 or 0
  item:append_text(" [" .. CHECKSUM[status] .. "]")
  item:add(icrc_status, tvb(bytes - ICRC_BYTES, ICRC_BYTES), status):set_generated()
  if status ~= 0 then return end
  item:add_proto_expert_info(bad_icrc, "it should be 0x" .. bit.tohex(right))
  packet:say("[bad ICRC]")
end

-- Removes padding and ICRC, if the packet says where they are.
local function dissect_tp(packet, tvb, pinfo)
  local bytes = tvb:reported_len()
  if bytes < 20 or bytes % 4 ~= 0 then
    packet:complain(malformed, bytes < 20 and "too short" or "no multiple of 4 bytes")
  end
  packet.stop = math.max(bytes - ICRC_BYTES, 0)
  local padded = tvb:len() >= 2 and tvb(1, 1):bitfield(2, 2) or 0
  if padded > math.max(packet.stop - 16, 0) then
    packet:complain(malformed, "padding that is not there")
    padded = 0
  end
  packet.stop = packet.stop - padded
  if tvb(0, 1):uint() == 0 then packet:take_utp() else packet:take_rtp() end
  if padded > 0 and packet.stop + padded <= tvb:len() then
    packet.tree:add(padding, tvb(packet.stop, padded))
  end
  add_icrc(packet, tvb, pinfo)
end

local WINDOW = "\253\117\114\109\097"  -- fd75:726d:61
local function in_window()
  local from, to = addresses()
  return from and #from == 16 and from:sub(1, 5) == WINDOW and to:sub(1, 5) == WINDOW
end

-- A datagram between a device and its switch. Returns what has its words.
local function dissect_link(tvb, pinfo, item)
  local outer = packet_of(tvb, pinfo, item)
  if not outer:take(LINK_WORD) then return outer end
  local form = rshift(outer:byte(0), 4)
  if form == 0 then
    local kind = outer:left() > 0 and tvb:len() > 4 and outer:byte(4) or 0
    outer:say("link %s", LINK_MESSAGES[kind] or "message")
    outer:take(LINK_CONTROL)
    return outer
  end
  if form ~= 7 then
    outer:complain(unknown, "CFG " .. form)
    outer:rest(undecoded)
    return outer
  end
  if not outer:take(NTH_CNA24) then return outer end
  if tvb:len() == outer.at then
    outer:complain(malformed, "no packet behind NTH")
    return outer
  end
  local inside = tvb(outer.at):tvb()
  local packet = packet_of(inside, pinfo, item)
  -- As the ICRC covers NTH: CCI and LBF are ones.
  packet.before = tvb:raw(4, 6) .. "\255\255\255" .. tvb:raw(13, 1)
  packet:say("CNA %d to %d", tvb(4, 3):uint(), tvb(7, 3):uint())
  dissect_tp(packet, inside, pinfo)
  return packet
end

function uboe.dissector(tvb, pinfo, tree)
  if tvb:len() == 0 then return 0 end
  local compact = pinfo.dst_port == CTP_PORT
  local link = pinfo.dst_port == LINK_PORT or pinfo.src_port == LINK_PORT
  if compact and not in_window() then return 0 end
  local item = tree:add(uboe, tvb())
  local packet = packet_of(tvb, pinfo, item)
  pinfo.cols.protocol = compact and "UB CTP" or link and "UB link" or "UBoE"
  if link then
    packet = dissect_link(tvb, pinfo, item)
  elseif compact then
    packet:take_ctp()
  else
    dissect_tp(packet, tvb, pinfo)
  end
  local text = table.concat(packet.words, ", ")
  pinfo.cols.info = text
  item:append_text(": " .. text)
  return tvb:len()
end

local udp_port = DissectorTable.get("udp.port")
udp_port:add(UB_PORT, uboe)
udp_port:add(CTP_PORT, uboe)
udp_port:add(LINK_PORT, uboe)

-- On any other port: the ICRC must be valid, which the last bytes of other packets are not by
-- chance.
local POSSIBLE = { [0x00] = true, [0x01] = true, [0x81] = true, [0x02] = true, [0x03] = true,
  [0x05] = true, [0x06] = true, [0x08] = true }
uboe:register_heuristic("udp", function(tvb, pinfo, tree)
  local bytes = tvb:len()
  if bytes < 20 or bytes % 4 ~= 0 or not POSSIBLE[tvb(0, 1):uint()] then return false end
  if band(tvb(1, 1):uint(), 0xce) ~= 0 or not check_icrc(tvb, pinfo) then return false end
  uboe.dissector(tvb, pinfo, tree)
  pinfo.conversation = uboe
  return true
end)
