// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/receiver.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstring>

#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_notify/capacity.h"
#include "apps/urma_notify/lines.h"
#include "apps/urma_notify/options.h"
#include "apps/urma_notify/place.h"

namespace urma::apps::notify {
namespace {

using namespace std::chrono_literals;

constexpr auto silence = 2s;  // after this time without a message a sender is probed
constexpr uint64_t question_tag = uint64_t{1} << 62;  // plus the number of the transfer

}  // namespace

Receiver::Receiver(const std::string& device, int folder, std::atomic<bool>& over)
    : device_text_(device),
      folder_(folder),
      over_(over),
      device_(captures_.watch(apps::open_device(device))),
      dialogue_(device_, receiver_options(wording())) {
  must(dialogue_.jetty().fd(), "the device");
  const auto published = device_.publish("urma_notify", dialogue_.jetty(), everyone());
  if (!published) throw apps::not_published(device_, service(), published.error());
}

void Receiver::say_where() {
  const Endpoint at = device_.endpoint();
  say_line(fmt::format("urma_notify at {}; send to it by: {}", to_string(at),
                       apps::command_to_reach(device_, device_text_, service())));
}

void Receiver::run() {
  std::array<Completion, 64> taken;
  while (!apps::interrupted() && !over_) {
    const size_t count = dialogue_.jetty().poll(taken);
    for (const Completion& completion : std::span(taken).first(count)) handle(completion);
    if (count > 0 && taken[0].status == Status::closed) break;
    const bool more = work_on_files();
    if (count == 0 && !more && dialogue_.jetty().arm()) sleep();
    look_after_senders();
  }
  say_goodbye();
}

// Sleeps until something arrives. While there are transfers, sleeps at most 1 s, so that silent
// senders are noticed.
void Receiver::sleep() {
  pollfd events[] = {{.fd = *dialogue_.jetty().fd(), .events = POLLIN, .revents = 0},
                     {.fd = apps::interrupt_descriptor(), .events = POLLIN, .revents = 0}};
  ::poll(events, std::size(events), transfers_.empty() ? -1 : 1000);
}

void Receiver::handle(const Completion& completion) {
  const auto text = dialogue_.handle(completion);
  // An acknowledgement or a probe, whose tag has the number of the transfer. A message has not.
  if (completion.operation == Operation::send && (completion.tag & Dialogue::message_tag) == 0 &&
      ((completion.tag & question_tag) != 0 || !completion.ok())) {
    // Either the sender still runs, or it is lost. All blocks that were acknowledged to it are on
    // the disk.
    for (Transfer& transfer : transfers_) {
      if (transfer.number != static_cast<uint32_t>(completion.tag)) continue;
      transfer.asked = false;
      transfer.heard = Clock::now();
      if (!completion.ok()) transfer.state = Transfer::State::over;
    }
  }
  if (completion.operation != Operation::receive || !completion.ok()) return;
  if (completion.with_immediate) return handle_block(completion);
  if (!text) return;
  try {
    handle_message(completion, parse_message(*text));
  } catch (const NotUnderstood& why) {
    dialogue_.drop(completion, why.what());
    give_up_on(completion, why.what());
  } catch (const std::exception& why) {
    // A sender that cannot be answered must not end the service for the others.
    dialogue_.leave_unanswered(completion, why.what());
  }
}

Transfer* Receiver::find(uint32_t number, const Completion& arrival) {
  for (Transfer& transfer : transfers_) {
    if (transfer.number == number && transfer.from == arrival.from &&
        transfer.from_jetty == arrival.from_jetty) {
      return &transfer;
    }
  }
  return nullptr;
}

void Receiver::handle_block(const Completion& arrival) {
  Transfer* const transfer = find(transfer_in(arrival.immediate), arrival);
  if (transfer == nullptr || transfer->state != Transfer::State::receiving) return;
  transfer->heard = Clock::now();
  const uint64_t number = block_in(arrival.immediate);
  if (number < transfer->next || number >= transfer->next + slots) return;
  transfer->filled[number % slots] = true;
  try {
    for (; transfer->filled[transfer->next % slots]; ++transfer->next) {
      transfer->filled[transfer->next % slots] = false;
      store_next(*transfer);
      dialogue_.post(transfer->from, urma::send(std::span<const std::byte>(), transfer->back)
                                         .immediate(immediate_of(transfer->number, transfer->next))
                                         .tag(transfer->number));
    }
  } catch (const Failure& failure) {
    fail(*transfer, 0, failure);
  }
}

// The sender owns the memory of the slot, and may be wrong or hostile.
void Receiver::store_next(Transfer& transfer) {
  const uint64_t number = transfer.next;
  const auto slot = transfer.staging.bytes().subspan(number % slots * slot_bytes);
  BlockHead head{};
  std::memcpy(&head, slot.data(), sizeof head);
  const bool sized = number < blocks_of(transfer.bytes) &&
                     (head.bytes == 0 || head.bytes == bytes_of_block(transfer.bytes, number));
  const auto block = slot.subspan(slot_bytes - block_bytes, sized ? head.bytes : 0);
  if (!sized || head.number != number || head.check != check_of(block)) {
    throw Failure(Exit::wrong_bytes,
                  fmt::format("{}: block {} did not arrive as it was sent. Fix: report this as "
                              "a fault of liburma, and send it again",
                              transfer.name, number));
  }
  if (block.empty()) {
    transfer.file.skip(number);
  } else {
    transfer.file.put(number, block);
  }
}

void Receiver::handle_message(const Completion& arrival, const Message& question) {
  if (question.type == "offer" || question.type == "folder") return accept(arrival, question);
  const auto asked = body_of<Ask>(question);
  Transfer* const transfer = find(asked.transfer, arrival);
  if (transfer == nullptr || transfer->state == Transfer::State::over) return;
  transfer->heard = Clock::now();
  try {
    answer(*transfer, question, asked.block);
  } catch (const Failure& failure) {
    fail(*transfer, question.id, failure);
  }
}

void Receiver::answer(Transfer& transfer, const Message& question, uint64_t block) {
  using State = Transfer::State;
  if (question.type == "stop") {
    transfer.state = State::over;
  } else if (question.type == "checks") {
    dialogue_.send(transfer.back, {.id = question.id,
                                   .type = "checks",
                                   .body = Checks{transfer.file.checks(block, checks_at_a_time)}});
  } else if (question.type == "begin" && transfer.state == State::open) {
    transfer.file.begin(block);
    transfer.next = std::min(block, transfer.file.have());
    transfer.resumed = std::min(transfer.next * block_bytes, transfer.bytes);
    transfer.state = State::receiving;
    dialogue_.send(transfer.back,
                   {.id = question.id,
                    .type = "begun",
                    .body = Ask{.transfer = transfer.number, .block = transfer.next}});
  } else if (question.type == "finish") {
    // The digests are compared when the file has been read back. A missing block would be found
    // then.
    transfer.sender_sha256 = body_of<Finish>(question).sha256;
    transfer.finish_id = question.id;
    transfer.state = State::verifying;
  }
}

// Sends the last message of a transfer. Returns false if the sender takes no messages.
bool Receiver::reply(Transfer& transfer, const Message& message) {
  try {
    dialogue_.send(transfer.back, message);
    return true;
  } catch (const Failure&) {
    return false;
  }
}

// Reads first where answers go, so that a sender that is refused learns the reason.
void Receiver::accept(const Completion& arrival, const Message& question) {
  std::string jetty;
  read_field(question.body, "jetty", jetty);
  const RemoteJetty back = must(device_.import(jetty), "the sender").jetty;
  Failed why;
  try {
    check_version(question, {.protocol = protocol, .self = "receiver", .peer = "sender"},
                  dialogue_.wording());
    return dialogue_.send(
        back, question.type == "offer" ? accepted(arrival, question, back) : made(question));
  } catch (const NotUnderstood& error) {
    why.message =
        fmt::format("\"{}\" is not understood: {}. Fix: use the same urma_notify on both sides",
                    question.type, error.what());
  } catch (const Busy& busy) {
    why = {.exit = busy.exit(), .message = busy.what(), .again = true};
  } catch (const Failure& failure) {
    why = {.exit = failure.exit(), .message = failure.what()};
  }
  dialogue_.send(back, failed_message(question.id, std::move(why)));
}

// Begins the transfer that is offered, and returns the answer.
Message Receiver::accepted(const Completion& arrival, const Message& question,
                           const RemoteJetty& back) {
  const auto offer = body_of<Offer>(question);
  if (transfers_.size() >= most_transfers) {
    throw Busy(
        Exit::error,
        fmt::format("the receiver takes at most {} files at a time. Fix: repeat this command "
                    "when a transfer has ended",
                    most_transfers));
  }
  Segment staging = must(device_.allocate(size_t{slots} * slot_bytes), "staging memory");
  try {
    transfers_.emplace_back(++last_number_, arrival, back, offer, folder_, std::move(staging));
  } catch (const Busy&) {
    // The other sender may have died, so its transfer is probed immediately, and not after 2 s.
    for (Transfer& transfer : transfers_) {
      if (transfer.name == offer.name) transfer.heard -= silence;
    }
    throw;
  }
  const Transfer& made = transfers_.back();
  return {.id = question.id,
          .type = "accepted",
          .body = Accepted{.transfer = made.number,
                           .have = made.file.have(),
                           .whole = made.file.whole(),
                           .staging = made.staging.descriptor(),
                           .holes = true}};
}

Message Receiver::made(const Message& question) {
  const auto folder = body_of<Folder>(question);
  make_folder(folder_, folder.name, folder.attributes);
  say_line(text_of(folder));
  return {.id = question.id, .type = "made", .body = Ask{}};
}

// Reads the files back in parts, because senders need this thread, too: blocks of a file that is
// being received while its sender prepares the next ones. Returns true if there is more to do.
bool Receiver::work_on_files() {
  bool more = false;
  for (Transfer& transfer : transfers_) {
    const bool whole = transfer.state == Transfer::State::verifying;
    if (!whole && transfer.state != Transfer::State::receiving) continue;
    try {
      if (!transfer.file.read_back(whole ? blocks_of(transfer.bytes) : transfer.next)) {
        more = true;
      } else if (whole) {
        finish(transfer);
      }
    } catch (const Failure& failure) {
      fail(transfer, transfer.finish_id, failure);
    }
  }
  return more;
}

void Receiver::finish(Transfer& transfer) {
  const std::string digest = transfer.file.digest();
  if (digest != transfer.sender_sha256) {
    transfer.file.discard();
    return fail(transfer, transfer.finish_id,
                {Exit::wrong_bytes,
                 fmt::format("{}: the bytes on the disk are not those that were sent (SHA-256 {} "
                             "and {}). Fix: check that disk, and send it again",
                             transfer.name, digest, apps::printable(transfer.sender_sha256))});
  }
  transfer.file.commit();
  const bool replied = reply(
      transfer,
      {.id = transfer.finish_id, .type = "finished", .body = Ask{.transfer = transfer.number}});
  transfer.state = Transfer::State::over;
  const double seconds = std::chrono::duration<double>(Clock::now() - transfer.began).count();
  const std::string done =
      transfer.file.whole()
          ? fmt::format("{}: it was there already, and is the same", transfer.name)
          : fmt::format("{}: {} bytes, {} of them before, in {:.1f} s, SHA-256 {}", transfer.name,
                        transfer.bytes, transfer.resumed, seconds, digest);
  say_line(replied ? done : done + "; its sender takes no messages and was not notified");
}

// The partial file is kept for the next attempt. A sender that takes no messages notices by itself
// that its transfer has ended.
void Receiver::fail(Transfer& transfer, uint64_t id, const Failure& failure) {
  (void)reply(transfer, failed_message(id, {.exit = failure.exit(), .message = failure.what()}));
  say_line(fmt::format("{}: given up: {}", transfer.name, failure.what()));
  transfer.state = Transfer::State::over;
}

// Nothing that this sender asks from now on can be relied on.
void Receiver::give_up_on(const Completion& arrival, std::string_view why) {
  for (Transfer& transfer : transfers_) {
    if (transfer.from != arrival.from || transfer.from_jetty != arrival.from_jetty) continue;
    if (transfer.state == Transfer::State::over) continue;
    fail(transfer, 0,
         {Exit::error, fmt::format("a message is not understood: {}. Fix: use the same urma_notify "
                                   "on both sides",
                                   why)});
  }
}

void Receiver::look_after_senders() {
  const auto now = Clock::now();
  for (Transfer& transfer : transfers_) {
    if (transfer.state == Transfer::State::over || transfer.asked ||
        now - transfer.heard < silence) {
      continue;
    }
    transfer.asked = true;
    try {
      dialogue_.post(transfer.from, urma::send(std::span<const std::byte>(), transfer.back)
                                        .immediate(are_you_there)
                                        .tag(question_tag | transfer.number));
    } catch (const Failure&) {
      transfer.state = Transfer::State::over;  // it takes nothing
    }
  }
  transfers_.remove_if([](const Transfer& one) { return one.state == Transfer::State::over; });
}

// Sends the last answers before the device closes.
void Receiver::say_goodbye() {
  for (Transfer& transfer : transfers_) {
    fail(
        transfer, 0,
        {Exit::peer_lost,
         "the receiver was stopped. Fix: start it, and send the file again: the transfer resumes"});
  }
  for (const auto until = Clock::now() + 300ms; !dialogue_.idle() && Clock::now() < until;) {
    for (const Completion& completion : dialogue_.jetty().wait(10ms)) dialogue_.handle(completion);
  }
  for (const std::string& line : dialogue_.complaints()) complain(line);
}

}  // namespace urma::apps::notify
