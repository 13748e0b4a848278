#include "apps/urma_notify/sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/program.h"
#include "apps/urma_notify/lines.h"

namespace urma::apps::notify {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t sender_berths = 64;
constexpr uint32_t sender_receives = 32;
constexpr auto receiver_silence =
    2s;  // after this time without progress the sender probes the receiver by reading its memory
constexpr uint64_t life_tag = uint64_t{1} << 62;
constexpr uint64_t block_tag = uint64_t{1} << 61;  // plus the number of the slot

void require_utf8(const std::string& name) {
  try {
    (void)nlohmann::json(name).dump();
  } catch (const nlohmann::json::exception&) {
    throw Failure(Exit::usage, "the name is not UTF-8. Fix: give another name with --as NAME");
  }
}

}  // namespace

Sender::Sender(const Options& options, const Outgoing& file, Device& device)
    : options_(options),
      file_(file),
      device_(device),
      dialogue_(device, {.wording = wording(),
                         .berths = sender_berths,
                         .berths_one = sender_berths,  // there is one receiver
                         .receives = sender_receives}),
      asker_(dialogue_, "the receiver at " + options.host) {}

Exit Sender::run() {
  Progress progress(options_.name, file_.bytes());
  try {
    offer();
    const uint64_t first = compare();
    if (accepted_.whole) {
      if (first < blocks_of(file_.bytes())) {
        throw Failure(Exit::error,
                      fmt::format("the receiver at {} has a different file named \"{}\". Fix: "
                                  "remove or rename it there, or send with --replace",
                                  options_.host, options_.name));
      }
      finish("same");
      say_line(fmt::format("{}: it was there already, and is the same", options_.name));
      return Exit::ok;
    }
    send_from(first, progress);
    file_.check_unchanged();
    finish("finish");
    progress.done();
    return Exit::ok;
  } catch (const Failure& failure) {
    progress.wipe();
    // So that the receiver does not wait for this sender.
    if (reached() && failure.exit() != Exit::peer_lost) stop();
    throw;
  }
}

void Sender::offer() {
  apps::Service to = service(options_.path);
  if (!options_.devices.empty()) to.device = options_.devices[0];
  asker_.meet(apps::find_server(device_, options_.host, to).jetty);
  require_utf8(options_.name);
  const Offer what{.speaks = options_.speaks,
                   .version = library_version(),
                   .jetty = dialogue_.jetty().descriptor(),
                   .name = options_.name,
                   .bytes = file_.bytes(),
                   .replace = options_.replace};
  // An earlier sender of this name may have died, and the receiver may not have noticed that yet.
  for (const auto until = Clock::now() + std::chrono::seconds(options_.patience_seconds);;) {
    try {
      accepted_ = ask<Accepted>("offer", what);
      staging_ = must(device_.import(accepted_.staging), "the receiver's memory").segment;
      return;
    } catch (const Refused& refused) {
      if (!refused.again() || Clock::now() > until) throw;
    }
    turn(200ms);
  }
}

// Returns the first block that the receiver does not have with the same bytes.
uint64_t Sender::compare() {
  while (checks_.size() < accepted_.have) {
    const auto theirs =
        ask<Checks>("checks", Ask{.transfer = accepted_.transfer, .block = checks_.size()}).checks;
    if (theirs.empty()) break;
    for (const uint32_t check : theirs) {
      const uint64_t number = checks_.size();
      if (number >= accepted_.have || check_of_block(number) != check) return number;
      checks_.push_back(check);
    }
  }
  return checks_.size();
}

uint32_t Sender::check_of_block(uint64_t number) {
  return check_of(file_.read(number, slots_[0].memory));
}

void Sender::send_from(uint64_t first, Progress& progress) {
  const auto begun = ask<Ask>("begin", Ask{.transfer = accepted_.transfer, .block = first});
  acknowledged_ = begun.block;
  progress.begin(std::min(acknowledged_ * block_bytes, file_.bytes()));
  const uint64_t blocks = blocks_of(file_.bytes());
  const auto began = Clock::now();
  for (uint64_t next = acknowledged_; acknowledged_ < blocks;) {
    auto wait = 100ms;
    while (next < blocks && next < acknowledged_ + slots) {
      if (options_.bytes_per_second > 0) {
        const auto due = began + std::chrono::microseconds((next - begun.block) * block_bytes *
                                                           1000000 / options_.bytes_per_second);
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
        if (left > 0ms) {
          wait = std::min(wait, left);
          break;
        }
      }
      if (!send_block(next)) break;
      ++next;
    }
    turn(wait);
    progress.at(std::min(acknowledged_ * block_bytes, file_.bytes()));
  }
}

// Returns false if the block's slot is still in use.
bool Sender::send_block(uint64_t number) {
  Slot& slot = slots_[number % slots];
  if (slot.lent || slot.filled) return false;
  const auto place = std::span(slot.memory).subspan(slot_bytes - block_bytes);
  const auto block = file_.read(number, place);
  const BlockHead head{
      .number = number, .bytes = static_cast<uint32_t>(block.size()), .check = check_of(block)};
  std::memcpy(slot.memory.data(), &head, sizeof head);
  checks_.push_back(head.check);
  slot.lent = slot.filled = true;
  const auto bytes =
      std::span<const std::byte>(slot.memory).first(slot_bytes - block_bytes + block.size());
  dialogue_.post(asker_.to().peer, urma::write(bytes, staging_, number % slots * slot_bytes)
                                       .to(asker_.to())
                                       .immediate(immediate_of(accepted_.transfer, number))
                                       .tag(block_tag | number % slots));
  return true;
}

void Sender::finish(const std::string& type) {
  FileCheck all;
  for (const uint32_t check : checks_) all.add(check);
  ask<Ask>(type, Finish{.transfer = accepted_.transfer, .block = 0, .check = all.value()});
}

void Sender::stop() {
  try {
    dialogue_.send(asker_.to(),
                   {.id = 0, .type = "stop", .body = Ask{.transfer = accepted_.transfer}});
    for (const auto until = Clock::now() + 300ms; !dialogue_.idle() && Clock::now() < until;) {
      for (const Completion& completion : dialogue_.jetty().wait(10ms))
        dialogue_.handle(completion);
    }
  } catch (const std::exception&) {
    // The receiver notices by itself that this sender has ended.
  }
}

template <class Answer>
Answer Sender::ask(const std::string& type, nlohmann::json body) {
  asker_.ask(type, std::move(body));
  heard_ = Clock::now();
  for (const auto until = Clock::now() + 10s;;) {
    turn(100ms);
    if (const auto& answer = asker_.answer()) return asker_.read<Answer>(*answer);
    // Until there is staging memory to probe, only a timeout shows that the receiver does not
    // answer.
    if (!reached() && Clock::now() > until) lose(Status::timed_out);
  }
}

// Waits once for completions and handles them. Everything that can end an attempt is noticed here.
void Sender::turn(std::chrono::milliseconds limit) {
  if (apps::interrupted()) {
    throw Failure(Exit::interrupted, "interrupted. Fix: send the file again: the transfer resumes");
  }
  std::optional<Status> lost;
  const auto taken = dialogue_.jetty().wait(limit);
  for (const Completion& completion : taken) {
    if (completion.operation != Operation::receive && !completion.ok() && !lost) {
      lost = completion.status;
    }
    take(completion);
  }
  // A message from the receiver explains more than the status of a work, so it gets 300 ms to
  // arrive.
  if (lost && !asker_.refused()) {
    for (const Completion& completion : dialogue_.jetty().wait(300ms)) take(completion);
  }
  (void)asker_.answer();  // throws if the receiver has refused
  if (lost) lose(*lost);
  if (!taken.empty()) {
    heard_ = Clock::now();
  } else if (reached() && !asked_ && Clock::now() - heard_ > receiver_silence) {
    asked_ = true;
    // The head of slot 0 belongs to this sender, so any value may be written there.
    static BlockHead nothing;
    dialogue_.post(
        asker_.to().peer,
        urma::read(std::as_writable_bytes(std::span(&nothing, 1)), staging_).tag(life_tag));
  }
}

void Sender::take(const Completion& completion) {
  const auto text = dialogue_.handle(completion);
  if (completion.tag == life_tag && completion.operation == Operation::read) asked_ = false;
  if (completion.operation == Operation::write) {
    slots_[completion.tag & ~block_tag].lent = false;
  }
  if (completion.operation != Operation::receive || !completion.ok()) return;
  if (text) asker_.take(completion, *text);
  if (completion.with_immediate && completion.from == asker_.to().peer &&
      transfer_in(completion.immediate) == accepted_.transfer &&
      completion.immediate != are_you_there) {
    slots_[block_in(completion.immediate) % slots].filled = false;
    ++acknowledged_;
  }
}

void Sender::lose(Status status) {
  const StatusInfo& info = describe(status);
  throw Failure(Exit::peer_lost,
                fmt::format("the receiver at {} is lost ({}: {}). Fix: start the receiver if it "
                            "has ended, and send the file again: the transfer resumes",
                            options_.host, info.name, info.meaning));
}

}  // namespace urma::apps::notify
