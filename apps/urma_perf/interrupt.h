#pragma once

namespace urma::perf {

// Ctrl-C asks for the summary so far: loops look at `interrupted` and come to an end. The second
// one exits at once. A closed pipe behind stdout is an error to report, not a signal to die of.
void handle_signals();
bool interrupted();

}  // namespace urma::perf
