// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/slab.h"
#include "jetty/target/atomic_results.h"
#include "jetty/target/execution_record.h"

namespace urma::jetty {

// The values that atomics of all peers' queues have fetched, as long as their initiators may ask
// for them again. A queue gets room with its first such atomic, and has it as long as its record,
// which knows where it is. It does not know whether a slice was executed. The Target owns it; only
// the thread that runs the engine calls it.
class FetchedValues {
 public:
  // `records`: how many records there can be.
  explicit FetchedValues(uint32_t records) : slab_(records) {}

  void keep(ExecutionRecord& record, Tassn number, AtomicResults::Result result) {
    if (record.results == ExecutionRecord::none) record.results = slab_.index_of(slab_.create());
    slab_.at(record.results).keep(number, result.fetched, result.bytes);
  }
  // Returns nothing if the slice fetched nothing, or if its value is not kept any more.
  std::optional<AtomicResults::Result> find(const ExecutionRecord& record, Tassn number) const {
    if (!slab_.live(record.results)) return std::nullopt;
    return slab_.at(record.results).find(number);
  }
  // The record ends.
  void forget(ExecutionRecord& record) {
    if (slab_.live(record.results)) slab_.destroy(&slab_.at(record.results));
    record.results = ExecutionRecord::none;
  }

 private:
  Slab<AtomicResults> slab_;
};

}  // namespace urma::jetty
