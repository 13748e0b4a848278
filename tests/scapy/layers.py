# SPDX-License-Identifier: Apache-2.0
"""Maps the names of headers and fields in the library's tests to the classes of ub.py."""

import ipaddress

from scapy.packet import NoPayload, Padding, Raw

import ub

LAYERS = {"rtph": ub.RTPH, "utph": ub.UTPH, "ctph": ub.CTPH, "addresses": ub.UPIH32,
          "saetph": ub.SAETPH,
          "btah": ub.BTAH, "atah": ub.ATAH, "maetah": ub.MAETAH, "mtetah": ub.MTETAH,
          "tvetah": ub.TVETAH, "ofstetah": ub.OFSTETAH, "immetah": ub.IMMETAH,
          "ntfetah": ub.NTFETAH, "udetah": ub.UDETAH, "setup": ub.SetupBody, "data": Raw,
          "cetph_ldcp": ub.LdcpCETPH, "cetph_caqm": ub.CaqmCETPH, "cetph_rate": ub.RateCETPH,
          "cetph_cnp": ub.CnpCETPH, "cci_caqm": ub.CaqmCCI, "cci_fecn_rtt": ub.FecnRttCCI,
          "cci_fecn": ub.FecnCCI, "nth_cna16": ub.Cna16NTH, "nth_cna24": ub.Cna24NTH,
          "nth_ip": ub.IpNTH, "link_word": ub.LinkWord, "link_control": ub.LinkControl}
NAMES = {layer: name for name, layer in LAYERS.items()}


def parse_value(text):
    """"0x1f", 32 hexadecimal digits (an EID), "1,5,63" (a bitmap) or the bytes of data."""
    if text.startswith("0x"):
        return int(text, 16)
    return text


def header_of(name, fields):
    """Returns the header with these `fields` (text); the others have the defaults of ub.py."""
    if name == "data":
        return Raw(bytes.fromhex(fields["hex"]))
    if name == "saetph":
        ones = [int(one) for one in fields.get("bits", "").split(",") if one]
        return ub.SAETPH.of(int(fields.get("max_received", "0"), 0),
                            int(fields.get("bit_count", "64"), 0), ones)
    values = {}
    for field, text in fields.items():
        if name == "addresses" and field in ("source", "destination"):
            values[field] = str(ipaddress.IPv6Address(bytes.fromhex(text)))
        else:
            values[field] = int(text, 0)
    return LAYERS[name](**values)


def fields_of(name, header):
    """Returns every field of a dissected header, including reserved ones, as `parse_value` does."""
    if name == "data":
        return {"hex": header.load.hex()}
    if name == "saetph":
        return {"max_received": header.max_received, "bit_count": len(header.bitmap) * 8,
                "bits": ",".join(str(one) for one in header.ones()), "reserved": header.reserved}
    values = {field.name: header.getfieldval(field.name) for field in header.fields_desc}
    if name == "addresses":
        for field in ("source", "destination"):
            values[field] = ipaddress.IPv6Address(values[field]).packed.hex()
    if name == "utph":
        values["reserved"] = int.from_bytes(values["reserved"], "big")
    return values


def expect_reports(names):
    """Prepares to dissect a packet that has layers of these names. Returns the number of the form
    of its CETPH, as set-up has it; 0 if it has none."""
    for number, layer in ub.REPORT_FORMS.items():
        if NAMES[layer] in names:
            ub.report_form = layer
            return number
    return 0


def layers_of(packet):
    """Returns [(name, header)] of a packet, without padding and ICRC."""
    found = []
    while not isinstance(packet, (NoPayload, Padding)):
        found.append((NAMES[type(packet)], packet))
        packet = packet.payload
    return found
