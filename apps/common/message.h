// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/common/failure.h"

namespace urma::apps {

// The two sides of a tool exchange JSON text: {"id", "type", "body"}. An answer has the id of its
// question; a message that neither asks nor answers has id 0.
struct Message {
  uint64_t id = 0;
  std::string type;
  nlohmann::json body;
};

// The settings that all messages of one tool share.
struct Wording {
  std::string program;       // which both sides run: urma_perf
  size_t most_bytes = 0;     // of a message's text
  std::string shorten = {};  // how a user makes a message shorter: "use fewer Jetties"
};

// Text of a peer that is not a message, or a body without the fields that its type has. `what` says
// why, without the peer's name, which the catcher knows.
class NotUnderstood : public std::exception {
 public:
  explicit NotUnderstood(std::string why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

// The text of a message. A byte that is not UTF-8 becomes a replacement character. Throws a Failure
// if the text would be longer than the peer's buffers.
std::string to_text(const Message& message, const Wording& wording);
// Throws NotUnderstood.
Message parse_message(std::string_view text);

// The Failure for an answer that was not understood. `peer` is like "the server at 10.0.0.5".
Failure not_understood(const std::string& peer, const std::string& type, const NotUnderstood& why,
                       const Wording& wording);

// The version of the messages that this side of a program speaks, and the two sides' names.
struct Speaker {
  int protocol = 0;
  std::string_view self;  // "server"
  std::string_view peer;  // "client"
};
// Returns the version of the library that the sender of this greeting uses. Throws a Failure if it
// speaks another protocol. Reads only the fields "speaks" and "version", which no version changes,
// so it is called before any other field is read.
std::string check_version(const Message& greeting, const Speaker& speaker, const Wording& wording);

// Reads a value, and accepts nothing that the C++ type cannot have: a number that is negative, too
// large or a fraction is an error, not another number. Throws NotUnderstood, which says `name`.
template <class T>
void read_value(const nlohmann::json& in, std::string_view name, T& out);
// Reads a field of a body. One that is missing is an error; with `read_optional` it is not, and
// `out` keeps its value.
template <class T>
void read_field(const nlohmann::json& body, const char* name, T& out);
template <class T>
void read_optional(const nlohmann::json& body, const char* name, T& out);

// Inside a struct, makes it the body of messages: the fields that are listed are written, and all
// of them must be there to be read.
#define URMA_BODY(Body, ...)                                                          \
  friend void to_json(nlohmann::json& out, const Body& in) { in.write_fields(out); }  \
  friend void from_json(const nlohmann::json& in, Body& out) { out.read_fields(in); } \
  void write_fields(nlohmann::json& out) const {                                      \
    urma::apps::write_fields(out, #__VA_ARGS__, __VA_ARGS__);                         \
  }                                                                                   \
  void read_fields(const nlohmann::json& in) {                                        \
    urma::apps::read_fields(in, #__VA_ARGS__, __VA_ARGS__);                           \
  }

// The body of a message, as the struct that its type has. Throws NotUnderstood.
template <class Body>
Body body_of(const Message& message);

// The answer "failed", to any question, or with id 0 for what is not a question.
struct Failed {
  Exit exit = Exit::error;
  std::string message;
  bool again = false;  // a retry may succeed in a moment
};
void to_json(nlohmann::json& out, const Failed& in);
// An exit code that this program does not know, or Exit::ok, becomes Exit::error. Older peers do
// not send `again`.
void from_json(const nlohmann::json& in, Failed& out);
Message failed_message(uint64_t id, Failed why);

// ---- implementation

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_dictionary = false;
template <class T>
inline constexpr bool is_dictionary<std::map<std::string, T>> = true;

[[noreturn]] void refuse_value(std::string_view name, std::string_view wanted);
// Returns whether the number is a whole one within the limits.
bool is_whole(const nlohmann::json& in, int64_t least, uint64_t most);

template <class T>
void read_value(const nlohmann::json& in, std::string_view name, T& out) {
  if constexpr (std::same_as<T, bool>) {
    if (!in.is_boolean()) refuse_value(name, "true or false");
    out = in.get<bool>();
  } else if constexpr (std::integral<T>) {
    using Limits = std::numeric_limits<T>;
    if (!is_whole(in, static_cast<int64_t>(Limits::min()), static_cast<uint64_t>(Limits::max()))) {
      refuse_value(name, std::is_unsigned_v<T>
                             ? "a whole number from 0 to " + std::to_string(Limits::max())
                             : "a whole number of " + std::to_string(sizeof(T)) + " bytes");
    }
    out = in.get<T>();
  } else if constexpr (std::floating_point<T>) {
    if (!in.is_number()) refuse_value(name, "a number");
    out = in.get<T>();
  } else if constexpr (std::same_as<T, std::string>) {
    if (!in.is_string()) refuse_value(name, "text");
    out = in.get<std::string>();
  } else if constexpr (is_list<T>) {
    if (!in.is_array()) refuse_value(name, "a list");
    out.clear();
    for (const nlohmann::json& one : in) read_value(one, name, out.emplace_back());
  } else if constexpr (is_pair<T>) {
    if (!in.is_array() || in.size() != 2) refuse_value(name, "a pair");
    read_value(in[0], name, out.first);
    read_value(in[1], name, out.second);
  } else if constexpr (is_dictionary<T>) {
    if (!in.is_object()) refuse_value(name, "an object");
    out.clear();
    for (const auto& [key, one] : in.items()) read_value(one, key, out[key]);
  } else {
    if (!in.is_object()) refuse_value(name, "an object");
    from_json(in, out);
  }
}

template <class T>
void read_field(const nlohmann::json& body, const char* name, T& out) {
  if (!body.is_object()) throw NotUnderstood("its body is not an object");
  const auto found = body.find(name);
  if (found == body.end()) throw NotUnderstood(std::string("\"") + name + "\" is missing");
  read_value(*found, name, out);
}

template <class T>
void read_optional(const nlohmann::json& body, const char* name, T& out) {
  if (body.is_object() && body.contains(name)) read_field(body, name, out);
}

// Removes the first of some names, "a, b, c", and returns it.
std::string take_name(std::string_view& names);

template <class... Fields>
void write_fields(nlohmann::json& out, std::string_view names, const Fields&... fields) {
  out = nlohmann::json::object();
  ((out[take_name(names)] = fields), ...);
}

template <class... Fields>
void read_fields(const nlohmann::json& in, std::string_view names, Fields&... fields) {
  (read_field(in, take_name(names).c_str(), fields), ...);
}

template <class Body>
Body body_of(const Message& message) {
  Body body;
  read_value(message.body, "its body", body);
  return body;
}

}  // namespace urma::apps
