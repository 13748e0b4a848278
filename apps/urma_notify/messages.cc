// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/messages.h"

#include <fmt/format.h>

namespace urma::apps::notify {

Wording wording() {
  return {.program = "urma_notify",
          .most_bytes = 32 * 1024,
          .shorten = "give a shorter name with --as NAME"};
}

void to_json(nlohmann::json& out, const Offer& in) {
  write_fields(out, "speaks, version, jetty, name, bytes, replace, attributes, unallocated",
               in.speaks, in.version, in.jetty, in.name, in.bytes, in.replace, in.attributes,
               in.unallocated);
}

void from_json(const nlohmann::json& in, Offer& out) {
  read_fields(in, "speaks, version, jetty, name, bytes, replace, attributes", out.speaks,
              out.version, out.jetty, out.name, out.bytes, out.replace, out.attributes);
  read_optional(in, "unallocated", out.unallocated);
}

void to_json(nlohmann::json& out, const Folder& in) {
  write_fields(out, "speaks, version, jetty, name, attributes, missing", in.speaks, in.version,
               in.jetty, in.name, in.attributes, in.missing);
}

void from_json(const nlohmann::json& in, Folder& out) {
  read_fields(in, "speaks, version, jetty, name, attributes", out.speaks, out.version, out.jetty,
              out.name, out.attributes);
  read_optional(in, "missing", out.missing);
}

std::string text_of(const Folder& folder) {
  if (folder.missing == 0) return folder.name + "/: complete";
  return fmt::format("{}/: incomplete, {} {} not sent", folder.name, folder.missing,
                     folder.missing == 1 ? "entry was" : "entries were");
}

void to_json(nlohmann::json& out, const Accepted& in) {
  write_fields(out, "transfer, have, whole, staging, holes", in.transfer, in.have, in.whole,
               in.staging, in.holes);
}

void from_json(const nlohmann::json& in, Accepted& out) {
  read_fields(in, "transfer, have, whole, staging", out.transfer, out.have, out.whole, out.staging);
  read_optional(in, "holes", out.holes);
}

}  // namespace urma::apps::notify
