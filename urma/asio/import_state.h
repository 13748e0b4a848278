// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "urma/asio/operation.h"
#include "urma/asio/readiness.h"
#include "urma/asio/service.h"
#include "urma/urma.hpp"

namespace urma::asio::detail {

// One import in progress, with the operation that waits for it. The wait in the reactor owns this
// object, so it is destroyed when the import has ended, or when the execution context drops the
// wait.
//
// `mutex_` guards all members. The library's Import is called under it, since one thread at a time
// may call it.
class ImportState final : public Owner {
 public:
  // Starts the import; the operation belongs to this object from now on.
  void start(ImportOperation& operation, Device& device, std::string_view what,
             const ImportOptions& options) {
    {
      const std::lock_guard held(mutex_);
      operation_ = &operation;
    }
    const auto begun = made_by("asio import", [&]() -> Result<void> {
      auto import = device.start_import(what, options);
      if (!import) return import.error();
      const Result<int> descriptor = import->fd();
      if (!descriptor) return descriptor.error();
      const std::lock_guard held(mutex_);
      if (operation_ == nullptr) return {};  // was cancelled meanwhile
      import_.emplace(std::move(*import));
      readiness_.emplace(executor_, *descriptor);
      service_->add(*this);
      await();
      return {};
    });
    if (begun) return;
    const std::lock_guard held(mutex_);
    if (ImportOperation* const failed = leave()) end(*failed, begun.error())->complete(Run::later);
  }

  explicit ImportState(const Executor& executor)
      : executor_(executor), service_(&Service::of(executor)) {}
  ~ImportState() { shutdown(); }

  void cancel(const Ticket& ticket, Status why, Effects) override {
    const std::lock_guard held(mutex_);
    if (ticket.import == nullptr) return;
    if (ImportOperation* const one = leave()) ended_with(*one, why)->complete(Run::later);
  }
  void shutdown() override {
    ImportOperation* dropped = nullptr;
    {
      const std::lock_guard held(mutex_);
      dropped = leave();
    }
    if (dropped != nullptr) dropped->drop();
  }

 private:
  // An error code has no room for the message, so it is in the result.
  static ImportOperation* end(ImportOperation& operation, const Error& error) {
    operation.result.warning = error.message;
    return ended_with(operation, error.status);
  }

  void await() {
    auto self = std::static_pointer_cast<ImportState>(shared_from_this());
    readiness_->async_wait([self = std::move(self)](ErrorCode) { self->step(); });
  }

  void step() {
    ImportOperation* ended = nullptr;
    {
      const std::lock_guard held(mutex_);
      if (operation_ == nullptr) return;
      auto outcome = import_->poll();
      if (!outcome) return await();
      ended = leave();
      if (*outcome) {
        ended->result = std::move(outcome->value());
        ended_with(*ended, Status::ok);
      } else {
        end(*ended, outcome->error());
      }
    }
    ended->complete(Run::here);
  }

  // Ends the import and returns its operation, or null if it has ended already. Afterwards this
  // object does not use the execution context.
  ImportOperation* leave() {
    if (service_ != nullptr) std::exchange(service_, nullptr)->remove(*this);
    readiness_.reset();
    import_.reset();
    return std::exchange(operation_, nullptr);
  }

  const Executor executor_;
  std::mutex mutex_;
  Service* service_;  // null once the import has ended
  std::optional<Import> import_;
  std::optional<Readiness> readiness_;
  ImportOperation* operation_ = nullptr;
};

}  // namespace urma::asio::detail
