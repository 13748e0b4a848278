// SPDX-License-Identifier: Apache-2.0
// Tests every parser of text from outside on any bytes. Oracle: what parses can be written, and the
// written text parses as the same value; what does not parse has a reason that is not much longer
// than the text; what is accepted has no control characters; and a name cannot leave its directory.

#include <algorithm>
#include <string>
#include <string_view>

#include "apps/urma_notify/place.h"
#include "drivers/impairment.h"
#include "engine/name_files.h"
#include "engine/pair_message.h"
#include "tests/fuzz/input.h"
#include "urma/core/descriptor.h"

namespace urma::fuzz {
namespace {

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != '\x7f'; });
}

void check_reason(const Error& error, std::string_view text) {
  require(error.status == Status::invalid_argument, "text that is wrong is an invalid argument");
  require(!error.message.empty(), "a refusal says why");
  // The reason may quote the text and, where options are read, each of their names.
  require(error.message.size() <= 8 * text.size() + 400,
          "a refusal is not much longer than its cause");
}

void check_address(std::string_view text) {
  const Result<Eid> eid = parse_address(text);
  if (!eid) return check_reason(eid.error(), text);
  require(printable(text), "an address has no control characters");
  const Result<Eid> again = parse_address(to_string(*eid));
  require(again.ok() && *again == *eid, "an address that was written parses as itself");
}

void check_endpoint(std::string_view text) {
  const Result<Endpoint> endpoint = parse_endpoint(text);
  if (!endpoint) return check_reason(endpoint.error(), text);
  require(printable(text), "an endpoint has no control characters");
  require(endpoint->port != 0, "an endpoint has a port");
  const Result<Endpoint> again = parse_endpoint(to_string(*endpoint));
  require(again.ok() && *again == *endpoint, "an endpoint that was written parses as itself");
}

void check_descriptor(std::string_view text) {
  const Result<Descriptor> descriptor = parse_descriptor(text);
  if (!descriptor) return check_reason(descriptor.error(), text);
  const std::string line = to_string(*descriptor);
  require(line.size() <= max_descriptor_bytes, "a descriptor fits into its line");
  require(printable(line), "a descriptor is one line of text");
  const Result<Descriptor> again = parse_descriptor(line);
  require(again.ok() && *again == *descriptor, "a descriptor that was written parses as itself");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  require(printable(text), "a descriptor has no control characters");
  if (const auto& segment = descriptor->segment) {
    require(segment->address + segment->bytes >= segment->address, "a segment does not wrap");
    require(number(segment->id) < id_limit, "a TokenID has 20 bits");
  }
}

std::string written(const drivers::DeviceString& device) {
  std::string text = device.name;
  const bool wraps = device.inner != nullptr;
  std::string options;
  if (wraps && !device.address.empty()) options = device.address;
  for (const auto& option : device.options) {
    options += options.empty() ? "" : wraps ? "," : "&";
    options += option.key + "=" + option.value;
  }
  if (wraps) return text + "(" + options + "):" + written(*device.inner);
  text += ":" + device.address;
  return options.empty() ? text : text + "?" + options;
}

// Reads every option as every type of value. Each either is valid, or keeps its default.
void check_options(const drivers::DeviceString& device, std::string_view whole) {
  for (const auto& option : device.options) {
    require(whole.substr(option.offset, option.key.size()) == option.key, "a key has its place");
    require(whole.substr(option.value_offset, option.value.size()) == option.value,
            "a value has its place");
    drivers::OptionReader reader(device);
    uint64_t size = 5000, count = 7;
    double fraction = 0.5;
    Duration duration(11);
    bool flag = true;
    Eid address;
    reader.size(option.key, size, 1024, 8192);
    reader.fraction(option.key, fraction);
    reader.duration(option.key, duration);
    reader.number(option.key, count);
    reader.flag(option.key, flag);
    reader.address(option.key, address);
    require(size >= 1024 && size <= 8192, "a size keeps its bounds");
    require(fraction >= 0 && fraction <= 1, "a fraction keeps its bounds");
    require(duration >= Duration{} && duration <= std::chrono::hours(1),
            "a duration keeps its bounds");
    if (const auto result = reader.finish(); !result) check_reason(result.error(), whole);
  }
  drivers::Impairment impairment;
  drivers::OptionReader reader(device);
  impairment.read_options(reader);
  if (const auto result = reader.finish(); !result) check_reason(result.error(), whole);
}

void check_device(std::string_view text) {
  const Result<drivers::DeviceString> device = drivers::parse_device_string(text);
  if (!device) return check_reason(device.error(), text);
  require(written(*device) == text, "a device string is the sum of its parts");
  for (const auto* part = &*device; part != nullptr; part = part->inner.get()) {
    require(part->text == text, "every part knows the whole");
    require(text.substr(part->offset, part->name.size()) == part->name, "a name has its place");
    check_options(*part, text);
  }
}

void check_name(std::string_view text) {
  if (!engine::valid_name(text)) return;
  require(text.size() <= 64 && printable(text), "a name is short and printable");
  require(text.find('/') == text.npos && text.front() != '.', "a name stays in its directory");
}

// Names of files that a peer sends.
void check_file_name(std::string_view text) {
  if (!apps::notify::objection_to(text).empty()) return;
  require(std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }),
          "a name of a file has no control characters");
  require(!text.starts_with('.'), "a name of a file is not hidden");
  std::string padded = "/" + std::string(text) + "/";
  for (const char* part : {"//", "/./", "/../", ".urma-part/"}) {
    const bool partial = std::string_view(part).starts_with(".urma");
    const size_t at = padded.find(part);
    const size_t begin = at == padded.npos ? 0 : padded.rfind('/', at);
    require(at == padded.npos || (partial && padded[begin + 1] != '.'),
            "a name of a file stays in its folder, and is not that of a partial file");
  }
}

void check_pair_message(std::string_view text) {
  const auto message = engine::read_pair_message(text);
  if (!message) return;
  require(printable(text), "a pair message has no control characters");
  std::string line;
  engine::write_pair_message(*message, line);
  require(line.size() <= text.size(), "a pair message is written in its shortest form");
  std::string again;
  const auto same = engine::read_pair_message(line);
  require(same.has_value(), "a pair message that was written is one");
  engine::write_pair_message(*same, again);
  require(again == line, "a pair message that was written is read as itself");
}

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  urma::fuzz::check_address(text);
  urma::fuzz::check_endpoint(text);
  urma::fuzz::check_descriptor(text);
  urma::fuzz::check_device(text);
  urma::fuzz::check_name(text);
  urma::fuzz::check_file_name(text);
  urma::fuzz::check_pair_message(text);
  return 0;
}
