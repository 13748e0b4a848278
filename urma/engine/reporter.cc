#include "urma/engine/reporter.h"

#include "urma/engine/engine.h"

namespace urma::engine {

Result<void> Reporter::start(const std::string& description) {
  return log_ == nullptr ? Result<void>{} : log_->start(description);
}

bool Reporter::report(Engine& engine, Time machine) {
  const Snapshot now = engine.snapshot();
  if (page_) page_->write(now.counts, machine);
  return log_ == nullptr || log_->offer(now);
}

void Reporter::close(const Snapshot& last) {
  page_.reset();
  if (log_ != nullptr) log_->finish(last);
}

void Reporter::abandon() {
  if (page_) page_->abandon();
  if (log_ != nullptr) log_->abandon();
}

}  // namespace urma::engine
