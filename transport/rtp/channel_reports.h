// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/routes.h"

namespace urma::transport {

// The reports of congestion of a channel: those of each of its routes, or of its only path. The
// owner of the channel keeps the sums of a single path, and passes them as `only`.
//
// It is a reference and is passed by value. The `Routes` outlive it. Only the thread that runs the
// engine calls it.
class ChannelReports {
 public:
  // `several`: null if the channel has one path.
  explicit ChannelReports(Routes* several) : several_(several) {}

  // Returns the sums that the packet of this frame, which has just come, adds to.
  ReportsGiven& given(ReportsGiven& only) const {
    return several_ == nullptr ? only : given_on(several_->scheduler().latest(), only);
  }
  // Returns the sums that an acknowledgement on this route reports.
  ReportsGiven& given_on(uint8_t route, ReportsGiven& only) const {
    return several_ == nullptr ? only : several_->reports().given(route);
  }
  // Returns the sums that the acknowledgement which has just come reports.
  ReportsTaken& taken(ReportsTaken& only) const {
    return several_ == nullptr ? only : several_->reports().taken(several_->scheduler().latest());
  }
  // Returns whether a report has to leave now.
  bool due(const ReportsGiven& only) const {
    return several_ == nullptr ? only.due() : several_->reports().due();
  }
  // A CNP has arrived. With a single path this does nothing.
  void notified(const congestion::Notified& event) const {
    if (several_ != nullptr) several_->notified(event);
  }

 private:
  Routes* several_;
};

}  // namespace urma::transport
