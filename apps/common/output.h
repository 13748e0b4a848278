// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace urma::apps {

// Called first in a program. It opens descriptors 0 to 2 if the parent has closed them: otherwise
// the next files opened would get these numbers, and messages would be written into them. A pipe
// whose reader has closed it becomes an error (EPIPE) instead of a signal that ends the process.
void prepare_output();

// Writes all of the text to the descriptor. Returns false if it cannot; errno says why.
bool write_all(int descriptor, std::string_view text);

// Prints on stdout, unbuffered. Throws a Failure if not all of it can be written; `what` begins its
// message.
void print(std::string_view text, std::string_view what = "output");
// Prints one object and an end of line, like `print`.
void print_json(const nlohmann::json& whole);

// Returns the width of the terminal at this descriptor, in characters; 0 if the descriptor is not a
// terminal.
size_t terminal_columns(int descriptor);

// Text of a user or of another process, made safe for a terminal: it has a `?` in place of each
// control character (C0, DEL, C1), each character that changes the direction of text, and each byte
// that is not UTF-8.
std::string printable(std::string_view text);

// Prints a line on stderr, unbuffered. If that fails, the failure is ignored: it must not change
// the exit code, and there is no other place to report it.
void print_error(std::string_view line);

}  // namespace urma::apps
