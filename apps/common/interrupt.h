#pragma once

namespace urma::apps {

// Ctrl-C asks for the summary so far: loops look at `interrupted` and come to an end. The second
// one exits at once.
void handle_signals();
bool interrupted();

// For who sleeps at descriptors: readable from then on. Made by `handle_signals`.
int interrupt_descriptor();

}  // namespace urma::apps
