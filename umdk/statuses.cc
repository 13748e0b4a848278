// SPDX-License-Identifier: Apache-2.0
#include "umdk/statuses.h"

namespace urma::umdk {

urma_cr_status_t record_status(const Completion& completion) {
  switch (completion.status) {
    case Status::ok:
      return URMA_CR_SUCCESS;
    case Status::bad_work:
      return URMA_CR_LOC_OPERATION_ERR;
    case Status::remote_access:
      return URMA_CR_REM_ACCESS_ABORT_ERR;
    case Status::unsupported:
      return URMA_CR_UNSUPPORTED_OPCODE_ERR;
    case Status::remote_unsupported:  // of a send: the buffer was too small, or there are none
      return completion.operation == Operation::send ? URMA_CR_REM_OPERATION_ERR
                                                     : URMA_CR_REM_UNSUPPORTED_REQ_ERR;
    case Status::receive_too_small:
      return URMA_CR_LOC_LEN_ERR;
    case Status::receiver_not_ready:
      return URMA_CR_RNR_RETRY_CNT_EXC_ERR;
    case Status::flushed:
      return URMA_CR_WR_FLUSH_ERR;
    case Status::unknown:
    case Status::peer_unreachable:
    case Status::peer_restarted:
      return URMA_CR_ACK_TIMEOUT_ERR;
    default:
      return URMA_CR_REM_OPERATION_ERR;
  }
}

urma_status_t call_status(Status status) {
  switch (status) {
    case Status::ok:
      return URMA_SUCCESS;
    case Status::no_resources:
      return URMA_ENOMEM;
    case Status::address_in_use:
      return URMA_EEXIST;
    case Status::permission_denied:
    case Status::unsupported:
      return URMA_ENOPERM;
    case Status::not_fenced:
      return URMA_EAGAIN;
    case Status::peer_unreachable:
    case Status::peer_restarted:
      return URMA_ETIMEOUT;
    case Status::invalid_argument:
    case Status::bad_work:
      return URMA_EINVAL;
    default:
      return URMA_FAIL;
  }
}

}  // namespace urma::umdk
