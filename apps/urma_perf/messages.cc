#include "apps/urma_perf/messages.h"

#include <fmt/format.h>

namespace urma::perf {

using nlohmann::json;

std::string library_version() { return URMA_VERSION; }

std::string to_text(const Message& message) {
  std::string text = json{{"id", message.id}, {"type", message.type}, {"body", message.body}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= most_message_bytes) return text;
  throw Failure(Exit::error,
                fmt::format("a control message \"{}\" has {} bytes, more than {}. Fix: "
                            "use fewer Jetties",
                            message.type, text.size(), most_message_bytes));
}

Message parse_message(const std::string& text) {
  try {
    const json parsed = json::parse(text);
    return {parsed.at("id"), parsed.at("type"), parsed.at("body")};
  } catch (const json::exception& e) {
    throw Failure(Exit::error, fmt::format("a control message is not understood: {}. Fix: use the "
                                           "same urma_perf on both sides",
                                           e.what()));
  }
}

void to_json(json& out, const SideDescription& in) {
  out = {{"segment", in.segment}, {"jetties", in.jetties}};
}
void from_json(const json& in, SideDescription& out) {
  in.at("segment").get_to(out.segment);
  in.at("jetties").get_to(out.jetties);
}

void to_json(json& out, const Case& in) {
  out = {{"test", in.test->name},
         {"bytes", in.bytes},
         {"depth", in.depth},
         {"jetties", in.jetties},
         {"signal_every", in.signal_every},
         {"verify", in.verify},
         {"limit", in.limit},
         {"own_memory", in.own_memory},
         {"spread", in.spread},
         {"order", in.ordering.order->name},
         {"mode", in.ordering.mode->name},
         {"fence_every", in.ordering.fence_every},
         {"atomic", in.atomic->name},
         {"seed", in.seed}};
}
template <class Named>
const Named* named(std::span<const Named> all, const json& in, const char* key,
                   const Named* otherwise) {
  const auto name = in.value(key, std::string(otherwise->name));
  if (const Named* found = find_named(all, name)) return found;
  throw Failure(Exit::version_mismatch,
                fmt::format("there is no {} \"{}\" here. Fix: use the same urma_perf on both sides",
                            key, name));
}
void from_json(const json& in, Case& out) {
  out.test = find_test(in.at("test").get<std::string>());
  if (out.test == nullptr) {
    throw Failure(Exit::version_mismatch,
                  fmt::format("there is no test \"{}\" here. Fix: use the same urma_perf on both "
                              "sides",
                              in.at("test").get<std::string>()));
  }
  in.at("bytes").get_to(out.bytes);
  in.at("depth").get_to(out.depth);
  in.at("jetties").get_to(out.jetties);
  out.signal_every = in.value("signal_every", out.signal_every);
  in.at("verify").get_to(out.verify);
  in.at("limit").get_to(out.limit);
  out.own_memory = in.value("own_memory", out.own_memory);
  out.spread = in.value("spread", out.spread);
  Ordering& ordering = out.ordering;
  ordering.order = named<NamedOrder>(named_orders, in, "order", ordering.order);
  ordering.mode = named<NamedMode>(named_modes, in, "mode", ordering.mode);
  ordering.fence_every = in.value("fence_every", ordering.fence_every);
  out.atomic = named<NamedAtomic>(named_atomics, in, "atomic", out.atomic);
  in.at("seed").get_to(out.seed);
}

void to_json(json& out, const Verdict& in) { out = {{"wrong", in.wrong}, {"first", in.first}}; }
void from_json(const json& in, Verdict& out) {
  in.at("wrong").get_to(out.wrong);
  in.at("first").get_to(out.first);
}

}  // namespace urma::perf
