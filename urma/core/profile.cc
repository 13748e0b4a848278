// SPDX-License-Identifier: Apache-2.0
#include "urma/core/profile.h"

namespace urma {
namespace {

using enum Stage;

constexpr StageInfo stages[] = {
    {post, "post", "Calls of Jetty::post."},
    {poll_found, "poll_found", "Polls that returned completions."},
    {poll_nothing, "poll_nothing", "Polls that returned nothing."},
    {wait, "wait", "Calls of wait, without the poll at their end; sleeping is included."},

    {copy_in_post, "copy_in_post", "Posts that copied works to or from mapped memory at once."},
    {send_ahead, "send_ahead", "Posts that sent the work at once, because a peer waits for it."},
    {look, "look", "Passes, or beginnings of passes, in which nothing had arrived."},
    {receive, "receive", "What had arrived was read and executed, and works were completed."},
    {commands, "commands", "Control calls and queries for names were executed."},
    {take, "take", "Posted works were taken and cut into slices, or copied."},
    {timers, "timers", "Timers were looked at, and what was due was done."},
    {send, "send", "Slices and answers were offered to channels, and packets filled and sent."},
    {settle, "settle", "Works were ended whose memory the driver no longer reads."},
    {finish, "finish", "Passes ended: threads to wake, events, the time of the next pass."},
    {report, "report", "Counters were copied for other processes and for the log."},
};
static_assert(std::size(stages) == stage_count, "each stage has one row");

}  // namespace

std::span<const StageInfo> all_stages() { return stages; }

}  // namespace urma
