#pragma once

#include <cstdint>
#include <vector>

namespace urma::perf {

// The processors that this process may use, those first that are cores of their own (siblings of
// earlier ones come last).
std::vector<int> processors();

// Binds the calling thread, and threads that it starts later. Fails when there is no such
// processor.
void pin(int processor);

// Undoes it for the calling thread.
void unpin();

// Nanoseconds for which this thread, or all threads that live now, wanted to run and could not.
int64_t waited_for_processor_this_thread();
int64_t waited_for_processor();

// Once per empty look of a loop that spins: with one processor the other side needs it.
void spin();

}  // namespace urma::perf
