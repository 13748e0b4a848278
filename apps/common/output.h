#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace urma::apps {

// First of all in a program. Descriptors 0 to 2 that its parent closed would else be those of the
// next files opened, into which messages then go. Who reads us may stop: an error, not a death.
void prepare_output();

// All of it to the descriptor. False: errno.
bool write_all(int descriptor, std::string_view text);

// On stdout, now. A Failure when not all of it could be written; `what` begins its message.
void print(std::string_view text, std::string_view what = "output");
// The same for one object, with an end of line.
void print_json(const nlohmann::json& whole);

// Text of a user or of another process, made safe for a terminal: it has a `?` in place of each
// control character (C0, DEL, C1), each character that changes the direction of text, and each byte
// that is not UTF-8.
std::string printable(std::string_view text);

// A line on stderr, now. Where that cannot be written there is nobody left to be told so: how the
// program ends must not change by it.
void print_error(std::string_view line);

}  // namespace urma::apps
