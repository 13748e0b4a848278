// SPDX-License-Identifier: Apache-2.0
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

void require_utf8(const Item& item) {
  try {
    (void)nlohmann::json(item.name).dump();
  } catch (const nlohmann::json::exception&) {
    throw Failure(Exit::usage,
                  item.path +
                      ": the name is not UTF-8. Fix: rename it, give another name with --as NAME, "
                      "or send an archive of its folder (tar)");
  }
}

}  // namespace

Sender::Sender(const Options& options, const std::string& host, Device& device, const Voice& voice)
    : options_(options),
      host_(host),
      device_(device),
      voice_(voice),
      dialogue_(device, {.wording = wording(),
                         .berths = sender_berths,
                         .berths_one = sender_berths,  // there is one receiver
                         .receives = sender_receives}),
      asker_(dialogue_, "the receiver at " + host) {}

void Sender::meet() {
  apps::Service to = service(options_);
  if (!options_.devices.empty()) to.device = options_.devices[0];
  asker_.meet(apps::find_server(device_, host_, to).jetty);
}

Sent Sender::send(const Item& item, uint64_t missing) {
  require_utf8(item);
  try {
    return item.kind == Item::Kind::folder ? send_folder(item, missing) : send_file(item);
  } catch (const Failure& failure) {
    // So that the receiver does not wait for this sender.
    if (accepted_.transfer != 0 && failure.exit() != Exit::peer_lost) stop();
    throw;
  }
}

Sent Sender::send_file(const Item& item) {
  const Outgoing file(item);
  Progress progress(item.name, file.bytes(), voice_);
  digest_ = Sha256();
  hashed_ = 0;
  Sent sent{.name = item.name, .bytes = file.bytes()};
  try {
    offer(file, item.name);
    const uint64_t first = compare(file);
    sent.resumed = std::min(first * block_bytes, file.bytes());
    if (accepted_.whole) {
      if (first < blocks_of(file.bytes())) {
        throw Failure(Exit::error,
                      fmt::format("the receiver at {} has a different file named \"{}\". Fix: "
                                  "remove or rename it there, or send with --replace",
                                  host_, item.name));
      }
      sent.sha256 = finish();
      sent.result = Sent::Result::same;
      voice_.say(fmt::format("{}: it was there already, and is the same", item.name));
    } else {
      send_from(file, first, progress);
      file.check_unchanged();
      sent.sha256 = finish();
      sent.result = Sent::Result::sent;
      progress.done();
    }
    accepted_ = {};
    return sent;
  } catch (const Failure&) {
    progress.wipe();
    throw;
  }
}

Sent Sender::send_folder(const Item& item, uint64_t missing) {
  const Folder folder{.speaks = options_.speaks,
                      .version = library_version(),
                      .jetty = dialogue_.jetty().descriptor(),
                      .name = item.name,
                      .attributes = item.attributes,
                      .missing = missing};
  ask<Ask>("folder", folder);
  reached_ = true;
  voice_.say(text_of(folder));
  return {.name = item.name,
          .folder = true,
          .result = missing == 0 ? Sent::Result::sent : Sent::Result::incomplete,
          .missing = missing};
}

void Sender::offer(const Outgoing& file, const std::string& name) {
  const Offer what{.speaks = options_.speaks,
                   .version = library_version(),
                   .jetty = dialogue_.jetty().descriptor(),
                   .name = name,
                   .bytes = file.bytes(),
                   .replace = options_.replace,
                   .attributes = file.attributes(),
                   .unallocated = file.unallocated()};
  // An earlier sender of this name may have died, and the receiver may not have noticed that yet.
  for (const auto until = Clock::now() + std::chrono::seconds(options_.patience_seconds);;) {
    try {
      accepted_ = ask<Accepted>("offer", what);
      reached_ = true;
      staging_ = must(device_.import(accepted_.staging), "the receiver's memory").segment;
      return;
    } catch (const Refused& refused) {
      if (!refused.again() || Clock::now() > until) throw;
    }
    turn(200ms);
  }
}

// Returns the first block that the receiver does not have with the same bytes.
uint64_t Sender::compare(const Outgoing& file) {
  std::vector<std::byte> memory(block_bytes);
  while (hashed_ < accepted_.have) {
    const auto theirs =
        ask<Checks>("checks", Ask{.transfer = accepted_.transfer, .block = hashed_}).checks;
    if (theirs.empty()) break;
    for (const uint32_t check : theirs) {
      if (hashed_ >= std::min(accepted_.have, blocks_of(file.bytes()))) return hashed_;
      const auto block = file.read(hashed_, memory);
      if (check_of(block) != check) return hashed_;
      digest_.add(block);
      ++hashed_;
    }
  }
  return hashed_;
}

void Sender::send_from(const Outgoing& file, uint64_t first, Progress& progress) {
  const auto begun = ask<Ask>("begin", Ask{.transfer = accepted_.transfer, .block = first});
  if (begun.block != first) {
    throw apps::not_understood(asker_.peer(), "begin",
                               NotUnderstood("it begins with another block"), dialogue_.wording());
  }
  acknowledged_ = first;
  for (Slot& slot : slots_) slot.filled = false;
  progress.begin(std::min(first * block_bytes, file.bytes()));
  const uint64_t blocks = blocks_of(file.bytes());
  const auto began = Clock::now();
  for (uint64_t next = first; acknowledged_ < blocks;) {
    auto wait = 100ms;
    while (next < blocks && next < acknowledged_ + slots) {
      if (options_.bytes_per_second > 0) {
        const auto due = began + std::chrono::microseconds((next - first) * block_bytes * 1000000 /
                                                           options_.bytes_per_second);
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
        if (left > 0ms) {
          wait = std::min(wait, left);
          break;
        }
      }
      if (!send_block(file, next)) break;
      ++next;
    }
    turn(wait);
    progress.at(std::min(acknowledged_ * block_bytes, file.bytes()));
  }
}

// Returns false if the block's slot is still in use.
bool Sender::send_block(const Outgoing& file, uint64_t number) {
  Slot& slot = slots_[number % slots];
  if (slot.lent || slot.filled) return false;
  const auto place = std::span(slot.memory).subspan(slot_bytes - block_bytes);
  const auto block = file.read(number, place);
  digest_.add(block);
  ++hashed_;
  const auto sent = block.first(accepted_.holes && file.is_hole(number) ? 0 : block.size());
  const BlockHead head{
      .number = number, .bytes = static_cast<uint32_t>(sent.size()), .check = check_of(sent)};
  std::memcpy(slot.memory.data(), &head, sizeof head);
  slot.lent = slot.filled = true;
  const auto bytes =
      std::span<const std::byte>(slot.memory).first(slot_bytes - block_bytes + sent.size());
  dialogue_.post(asker_.to().peer, urma::write(bytes, staging_, number % slots * slot_bytes)
                                       .to(asker_.to())
                                       .immediate(immediate_of(accepted_.transfer, number))
                                       .tag(block_tag | number % slots));
  return true;
}

// The receiver compares its digest of the whole file with this one, and answers when the file is on
// the disk. Returns the digest.
std::string Sender::finish() {
  std::string digest = digest_.hex();
  ask<Ask>("finish", Finish{.transfer = accepted_.transfer, .block = 0, .sha256 = digest});
  return digest;
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
    if (accepted_.transfer == 0 && Clock::now() > until) lose(Status::timed_out);
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
  } else if (accepted_.transfer != 0 && !asked_ && Clock::now() - heard_ > receiver_silence) {
    asked_ = true;
    // The head of slot 0 belongs to this sender, so any value may be written there.
    dialogue_.post(
        asker_.to().peer,
        urma::read(std::as_writable_bytes(std::span(&probe_, 1)), staging_).tag(life_tag));
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
                            host_, info.name, info.meaning));
}

}  // namespace urma::apps::notify
