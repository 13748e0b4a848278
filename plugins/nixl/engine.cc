// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/engine.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/nixl/memory.h"
#include "plugins/nixl/note.h"
#include "plugins/nixl/transfer.h"

namespace urma::nixl {
namespace {

// Begins what an agent tells others about itself; the rest is the descriptor of its mailbox.
constexpr std::string_view info_prefix = "urma-nixl ";
constexpr std::string_view info_version = "urma-nixl 1 ";
constexpr uint32_t most_agents = 4096;
constexpr uint32_t most_segments = 1 << 20;

// NIXL has no log for plugins but that of the Abseil library that it was built with.
nixl_status_t complain(const Error& error) {
  std::fprintf(stderr, "NIXL backend URMA: %s\n", error.message.c_str());
  return status_of(error.status);
}

// No exception may reach NIXL, and only std::bad_alloc can be thrown here.
template <class Call>
nixl_status_t without_exceptions(Call&& call) {
  try {
    return call();
  } catch (const std::exception& failure) {
    return complain(error(Status::no_resources, std::string("memory is full: ") + failure.what()));
  }
}

}  // namespace

Engine::Engine(const nixlBackendInitParams* params) : nixlBackendEngine(params) {
  const Result<void> opened = open(*params->customParams);
  if (opened) return;
  complain(opened.error());
  initErr = true;
}

Engine::~Engine() {
  if (!open_) return;
  open_->service.reset();
  for (auto& [agent, known] : known_) {
    if (known.peer) known.peer->close();
  }
  open_->device.close();
}

Result<void> Engine::open(const nixl_b_params_t& params) {
  Result<Options> options = read_options(params);
  if (!options) return options.error();
  options_ = std::move(*options);
  if (localAgent.size() > most_name_bytes) {
    return error(Status::invalid_argument, "the name of the agent is longer than 1024 bytes");
  }
  const DeviceOptions how = {
      .operation_timeout = std::chrono::milliseconds(options_.timeout_ms),
      .limits = {.jetties = most_agents, .peers = most_agents, .segments = most_segments}};
  Result<Device> device =
      options_.device.empty() ? urma::open(how) : urma::open(options_.device, how);
  if (!device) return device.error();
  Result<std::unique_ptr<Mailbox>> mailbox = Mailbox::make(*device);
  if (!mailbox) return mailbox.error();
  const Result<int> events = device->events_fd();
  if (!events) return events.error();
  open_.emplace(Open{std::move(*device), std::move(*mailbox), nullptr});
  Result<std::unique_ptr<Service>> service = Service::start(
      {.mailbox = open_->mailbox->fd(), .events = *events}, [this] { return look(); });
  if (!service) {
    open_.reset();
    return service.error();
  }
  open_->service = std::move(*service);
  return {};
}

// Called by the thread of the engine.
bool Engine::look() {
  open_->mailbox->arm();
  std::array<Event, 16> events;
  for (size_t count = events.size(); count == events.size();) {
    count = open_->device.events(events);
    for (const Event& one : std::span(events).first(count)) {
      if (one.kind == EventKind::peer_left || one.kind == EventKind::peer_restarted) {
        open_->mailbox->forget(one.peer);
      }
    }
    if (count > 0 && events[count - 1].kind == EventKind::closed) break;
  }
  return progress_of_peers();
}

// Goes on with works for which no application polls, and returns whether there are any. Such a step
// may move data, so calls for other agents do not wait for it.
bool Engine::progress_of_peers() {
  std::vector<std::shared_ptr<Peer>> peers;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [agent, known] : known_) {
      if (known.peer && known.peer->owns_works()) peers.push_back(known.peer);
    }
  }
  for (const std::shared_ptr<Peer>& peer : peers) peer->progress();
  return !peers.empty();
}

nixl_status_t Engine::registerMem(const nixlBlobDesc& memory, const nixl_mem_t& type,
                                  nixlBackendMD*& out) {
  return without_exceptions([&] {
    if (!is_supported(type)) return NIXL_ERR_NOT_SUPPORTED;
    const std::span range(reinterpret_cast<std::byte*>(memory.addr), memory.len);
    SegmentOptions how = {.rights = Rights::read | Rights::write, .guarded = options_.guarded};
    Result<Segment> segment = open_->device.register_memory(range, how);
    if (!segment && segment.status() == Status::invalid_argument) {
      how.rights = Rights::read;  // memory that the program itself may only read
      segment = open_->device.register_memory(range, how);
    }
    if (!segment) return complain(segment.error());
    out = new OwnMemory(std::move(*segment));
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::deregisterMem(nixlBackendMD* memory) {
  const std::unique_ptr<nixlBackendMD> taken(memory);
  auto* const own = dynamic_cast<OwnMemory*>(memory);
  if (own == nullptr) return NIXL_ERR_INVALID_PARAM;
  const Result<void> done = own->segment.unregister();
  return done ? NIXL_SUCCESS : complain(done.error());
}

nixl_status_t Engine::getPublicData(const nixlBackendMD* memory, std::string& out) const {
  return without_exceptions([&] {
    const auto* const own = dynamic_cast<const OwnMemory*>(memory);
    if (own == nullptr) return NIXL_ERR_INVALID_PARAM;
    out = own->segment.descriptor();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::loadLocalMD(nixlBackendMD* memory, nixlBackendMD*& out) {
  return without_exceptions([&] {
    const auto* const own = dynamic_cast<const OwnMemory*>(memory);
    if (own == nullptr) return NIXL_ERR_INVALID_PARAM;
    const auto first = reinterpret_cast<uintptr_t>(own->segment.bytes().data());
    out = new TargetMemory(own->segment.local(), first);
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& type,
                                   const std::string&, nixlBackendMD*& out) {
  return without_exceptions([&] {
    if (!is_supported(type)) return NIXL_ERR_NOT_SUPPORTED;
    const Result<Descriptor> line = parse_descriptor(memory.metaInfo);
    if (!line) return complain(line.error());
    if (!line->segment) return NIXL_ERR_INVALID_PARAM;
    const Result<Imported> found = open_->device.import(memory.metaInfo);
    if (!found) return complain(found.error());
    out = new TargetMemory(found->segment, line->segment->address);
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::unloadMD(nixlBackendMD* memory) {
  delete memory;
  return NIXL_SUCCESS;
}

nixl_status_t Engine::getConnInfo(std::string& out) const {
  return without_exceptions([&] {
    out = std::string(info_version) + open_->mailbox->descriptor();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::loadRemoteConnInfo(const std::string& agent, const std::string& info) {
  return without_exceptions([&] {
    if (!info.starts_with(info_version)) {
      const bool ours = info.starts_with(info_prefix);
      return complain(error(ours ? Status::version_mismatch : Status::invalid_argument,
                            "the connection information of agent " + agent +
                                (ours ? " has another version" : " is not of this backend")));
    }
    std::string mailbox = info.substr(info_version.size());
    const Result<Descriptor> line = parse_descriptor(mailbox);
    if (!line) return complain(line.error());
    if (!line->jetty) return NIXL_ERR_INVALID_PARAM;
    // The agent of this name before it started again. Closing it takes some milliseconds.
    std::shared_ptr<Peer> former;
    {
      const std::scoped_lock lock(mutex_);
      Known& known = known_[agent];
      if (known.mailbox == mailbox) return NIXL_SUCCESS;
      former = std::exchange(known.peer, nullptr);
      known.mailbox = std::move(mailbox);
      // If the peer cannot be made now, the first transfer says why.
      if (Result<std::shared_ptr<Peer>> made = make_peer(known.mailbox)) known.peer = *made;
    }
    if (former) former->close();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::connect(const std::string& agent) {
  return without_exceptions([&] {
    const Result<std::shared_ptr<Peer>> peer = peer_of(agent);
    return peer ? NIXL_SUCCESS : complain(peer.error());
  });
}

nixl_status_t Engine::disconnect(const std::string& agent) {
  return without_exceptions([&] {
    std::shared_ptr<Peer> former;
    {
      const std::scoped_lock lock(mutex_);
      const auto at = known_.find(agent);
      if (at == known_.end()) return NIXL_ERR_NOT_FOUND;
      former = std::move(at->second.peer);
      known_.erase(at);
    }
    if (former) former->close();
    return NIXL_SUCCESS;
  });
}

Result<std::shared_ptr<Peer>> Engine::peer_of(const std::string& agent) const {
  const std::scoped_lock lock(mutex_);
  auto at = known_.find(agent);
  if (at == known_.end()) {
    if (agent != localAgent) {
      return Error{Status::not_found,
                   "agent \"" + agent + "\" is not known. Fix: load its metadata (loadRemoteMD)"};
    }
    at = known_.emplace(agent, Known{open_->mailbox->descriptor(), nullptr}).first;
  }
  Known& known = at->second;
  if (!known.peer) {
    Result<std::shared_ptr<Peer>> made = make_peer(known.mailbox);
    if (!made) return made.error();
    known.peer = std::move(*made);
  }
  return known.peer;
}

Result<std::shared_ptr<Peer>> Engine::make_peer(const std::string& mailbox) const {
  const Result<Imported> found = open_->device.import(mailbox);
  if (!found) return found.error();
  Result<Jetty> jetty = open_->device.jetty({.berths = options_.depth});
  if (!jetty) return jetty.error();
  return std::make_shared<Peer>(std::move(*jetty), found->jetty);
}

nixl_status_t Engine::prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                               const nixl_meta_dlist_t& remote, const std::string& agent,
                               nixlBackendReqH*& handle, const nixl_opt_b_args_t*) const {
  return without_exceptions([&] {
    if (!is_supported(local.getType()) || !is_supported(remote.getType())) {
      return NIXL_ERR_NOT_SUPPORTED;
    }
    if (local.descCount() != remote.descCount()) return NIXL_ERR_INVALID_PARAM;
    std::vector<Piece> pieces;
    const auto count = static_cast<size_t>(local.descCount());
    pieces.reserve(count);
    const nixlBackendMD* known = nullptr;  // ranges of one memory follow each other
    const TargetMemory* there = nullptr;
    for (size_t i = 0; i < count; ++i) {
      if (remote[i].metadataP != known) {
        known = remote[i].metadataP;
        there = dynamic_cast<const TargetMemory*>(known);
      }
      if (there == nullptr || local[i].len != remote[i].len ||
          !there->covers(remote[i].addr, remote[i].len)) {
        return NIXL_ERR_INVALID_PARAM;
      }
      append(pieces, {.here = reinterpret_cast<std::byte*>(local[i].addr),
                      .bytes = local[i].len,
                      .there = there->segment,
                      .offset = remote[i].addr - there->first});
    }
    Result<std::shared_ptr<Peer>> peer = peer_of(agent);
    if (!peer) return complain(peer.error());
    const Operation what = operation == NIXL_READ ? Operation::read : Operation::write;
    handle = new Transfer(std::move(*peer), what, std::move(pieces));
    return NIXL_SUCCESS;
  });
}

Result<std::vector<std::vector<std::byte>>> Engine::messages(
    const nixl_opt_b_args_t* options) const {
  if (options == nullptr || !options->hasNotif) return std::vector<std::vector<std::byte>>();
  if (options->notifMsg.size() > most_note_bytes) {
    return error(Status::invalid_argument, "a notification is longer than 64 MiB");
  }
  return messages_of(localAgent, options->notifMsg, ++notes_);
}

nixl_status_t Engine::postXfer(const nixl_xfer_op_t&, const nixl_meta_dlist_t&,
                               const nixl_meta_dlist_t&, const std::string&,
                               nixlBackendReqH*& handle, const nixl_opt_b_args_t* options) const {
  return without_exceptions([&] {
    auto* const transfer = dynamic_cast<Transfer*>(handle);
    if (transfer == nullptr) return NIXL_ERR_INVALID_PARAM;
    auto note = messages(options);
    if (!note) return complain(note.error());
    return transfer->peer()->post(*transfer, std::move(*note));
  });
}

nixl_status_t Engine::checkXfer(nixlBackendReqH* handle) const {
  return without_exceptions([&] {
    const auto* const transfer = dynamic_cast<const Transfer*>(handle);
    if (transfer == nullptr) return NIXL_ERR_INVALID_PARAM;
    return transfer->peer()->check(*transfer);
  });
}

nixl_status_t Engine::releaseReqH(nixlBackendReqH* handle) const {
  return without_exceptions([&] {
    auto* const transfer = dynamic_cast<Transfer*>(handle);
    if (transfer == nullptr) return NIXL_ERR_INVALID_PARAM;
    const std::shared_ptr<Peer> peer = transfer->detach();
    peer->release(std::unique_ptr<Transfer>(transfer));
    if (peer->owns_works()) open_->service->wake();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::getNotifs(notif_list_t& out) {
  return without_exceptions([&] {
    open_->mailbox->take(out);
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::genNotif(const std::string& agent, const std::string& text) const {
  return without_exceptions([&] {
    const nixl_opt_b_args_t options = {.notifMsg = text, .hasNotif = true, .customParam = {}};
    auto note = messages(&options);
    if (!note) return complain(note.error());
    const Result<std::shared_ptr<Peer>> peer = peer_of(agent);
    if (!peer) return complain(peer.error());
    auto alone = std::make_unique<Transfer>(nullptr, Operation::send, std::vector<Piece>());
    const nixl_status_t status = (*peer)->notify(std::move(alone), std::move(*note));
    // The thread sends what found no room in the queue.
    if ((*peer)->owns_works()) open_->service->wake();
    return status;
  });
}

}  // namespace urma::nixl
