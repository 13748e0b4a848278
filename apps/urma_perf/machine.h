// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace urma::apps::perf {

// Returns the processors that this process may use. One of each core comes first, their siblings
// last.
std::vector<int> processors();

// Binds the calling thread, and threads that it starts later, to a processor. Fails if there is no
// such processor.
void pin(int processor);

// Removes the binding of the calling thread.
void unpin();

// Returns the nanoseconds for which this thread, or all present threads, were ready to run and had
// no processor.
int64_t waited_for_processor_this_thread();
int64_t waited_for_processor();

// Called for each empty poll of a loop that spins. On a single processor it yields to the other
// side.
void spin();

}  // namespace urma::apps::perf
