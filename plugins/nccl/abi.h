// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between NCCL and its network plugins, versions 8 to 12, as NCCL lays it out in
// memory. NCCL installs no header of it. The names are those of this project; the order and the
// types are NCCL's.

#include <cstddef>
#include <cstdint>

namespace urma::nccl {

// ncclResult_t.
enum class Code : int {
  success = 0,
  system_error = 2,      // the system, or this process's device, fails
  internal_error = 3,    // a mistake of NCCL or of the plugin
  invalid_argument = 4,  // an argument that no caller may pass
  invalid_usage = 5,     // a mistake of the user
  remote_error = 6,      // the peer, or the way to it, fails
};

// Levels and subsystems of NCCL's log (NCCL_DEBUG, NCCL_DEBUG_SUBSYS).
enum LogLevel : int { log_warn = 2, log_info = 3 };
inline constexpr unsigned long log_init = 0x1;
inline constexpr unsigned long log_net = 0x10;
using Logger = void (*)(int level, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);
// NCCL's profiler, which this plugin does not call.
using Profiler = Code (*)(void** event, int type, void* parent, int64_t plugin, void* data);

inline constexpr size_t handle_bytes = 128;  // of a listener's handle
inline constexpr int host_pointers = 1;      // ptrSupport, and the type of memory in regMr
inline constexpr int requests_per_comm = 32;
// *request on entry of irecv: NCCL needs no completion, because the data has flags of its own.
inline constexpr uintptr_t optional_completion = 1;

struct CommConfig {
  int traffic_class;
};

// The physical devices of a virtual one.
template <int most>
struct VirtualProperties {
  int count;
  int devices[most];
};

struct PropertiesV8 {
  char* name;      // valid for as long as the plugin is loaded
  char* pci_path;  // null for a virtual device
  uint64_t guid;
  int pointers;
  int registrations_are_global;
  int speed_mbps;
  int port;
  float latency_us;
  int most_comms;
  int most_receives;  // in a grouped receive
  int device_type;    // 0: the host runs the plugin
  int device_version;
};
static_assert(offsetof(PropertiesV8, speed_mbps) == 32 && sizeof(PropertiesV8) == 64);

// ncclNetProperties_v9_t and ncclNetProperties_v10_t.
struct PropertiesV10 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers;
  int registrations_are_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int most_comms;
  int most_receives;
  int device_type;
  int device_version;
  VirtualProperties<4> physical;
  size_t most_p2p_bytes;
  size_t most_collective_bytes;
};
static_assert(offsetof(PropertiesV10, speed_mbps) == 36);
static_assert(offsetof(PropertiesV10, physical) == 64);
static_assert(offsetof(PropertiesV10, most_p2p_bytes) == 88 && sizeof(PropertiesV10) == 104);

struct PropertiesV11 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers;
  int registrations_are_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int most_comms;
  int most_receives;
  int device_type;
  int device_version;
  VirtualProperties<4> physical;
  size_t most_p2p_bytes;
  size_t most_collective_bytes;
  int most_multi_requests;
};
static_assert(offsetof(PropertiesV11, physical) == 64);
static_assert(offsetof(PropertiesV11, most_p2p_bytes) == 88);
static_assert(offsetof(PropertiesV11, most_multi_requests) == 104 && sizeof(PropertiesV11) == 112);

struct PropertiesV12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers;
  int registrations_are_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int most_comms;
  int most_receives;
  int device_type;
  int device_version;
  VirtualProperties<8> physical;
  size_t most_p2p_bytes;
  size_t most_collective_bytes;
  int most_multi_requests;
  int16_t rail;   // -1: undefined
  int16_t plane;  // -1: undefined
};
static_assert(offsetof(PropertiesV12, physical) == 64);
static_assert(offsetof(PropertiesV12, most_p2p_bytes) == 104);
static_assert(offsetof(PropertiesV12, most_multi_requests) == 120);
static_assert(offsetof(PropertiesV12, rail) == 124 && sizeof(PropertiesV12) == 128);

// ncclNet_v11_t and ncclNet_v12_t.
template <class Properties, int most_devices>
struct NetWithContext {
  const char* name;
  Code (*init)(void** context, uint64_t comm, CommConfig* config, Logger logger, Profiler profiler);
  Code (*devices)(int* count);
  Code (*get_properties)(int device, Properties* properties);
  Code (*listen)(void* context, int device, void* handle, void** listener);
  Code (*connect)(void* context, int device, void* handle, void** sender, void** device_comm);
  Code (*accept)(void* listener, void** receiver, void** device_comm);
  Code (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Code (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                           void** memory);
  Code (*deregister_memory)(void* comm, void* memory);
  Code (*isend)(void* sender, void* data, size_t bytes, int tag, void* memory, void* profile,
                void** request);
  Code (*irecv)(void* receiver, int count, void** data, size_t* bytes, int* tags, void** memories,
                void** profiles, void** request);
  Code (*iflush)(void* receiver, int count, void** data, int* bytes, void** memories,
                 void** request);
  Code (*test)(void* request, int* done, int* bytes);
  Code (*close_send)(void* sender);
  Code (*close_receive)(void* receiver);
  Code (*close_listen)(void* listener);
  Code (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Code (*irecv_consumed)(void* receiver, int count, void* request);
  Code (*make_virtual_device)(int* device, VirtualProperties<most_devices>* properties);
  Code (*finalize)(void* context);
  Code (*set_attributes)(void* context, void* attributes);
};
using NetV11 = NetWithContext<PropertiesV11, 4>;
using NetV12 = NetWithContext<PropertiesV12, 8>;
static_assert(sizeof(NetV11) == 22 * sizeof(void*) && sizeof(NetV12) == sizeof(NetV11));

// ncclNet_v10_t: no context, and no finalize.
struct NetV10 {
  const char* name;
  Code (*init)(Logger logger, Profiler profiler);
  Code (*devices)(int* count);
  Code (*get_properties)(int device, PropertiesV10* properties);
  Code (*listen)(int device, void* handle, void** listener);
  Code (*connect)(int device, CommConfig* config, void* handle, void** sender, void** device_comm);
  Code (*accept)(void* listener, void** receiver, void** device_comm);
  Code (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Code (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                           void** memory);
  Code (*deregister_memory)(void* comm, void* memory);
  Code (*isend)(void* sender, void* data, size_t bytes, int tag, void* memory, void* profile,
                void** request);
  Code (*irecv)(void* receiver, int count, void** data, size_t* bytes, int* tags, void** memories,
                void** profiles, void** request);
  Code (*iflush)(void* receiver, int count, void** data, int* bytes, void** memories,
                 void** request);
  Code (*test)(void* request, int* done, int* bytes);
  Code (*close_send)(void* sender);
  Code (*close_receive)(void* receiver);
  Code (*close_listen)(void* listener);
  Code (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Code (*irecv_consumed)(void* receiver, int count, void* request);
  Code (*make_virtual_device)(int* device, VirtualProperties<4>* properties);
};
static_assert(sizeof(NetV10) == 20 * sizeof(void*));

// ncclNet_v9_t: connect has no configuration, and requests no profile.
struct NetV9 {
  const char* name;
  Code (*init)(Logger logger);
  Code (*devices)(int* count);
  Code (*get_properties)(int device, PropertiesV10* properties);
  Code (*listen)(int device, void* handle, void** listener);
  Code (*connect)(int device, void* handle, void** sender, void** device_comm);
  Code (*accept)(void* listener, void** receiver, void** device_comm);
  Code (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Code (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                           void** memory);
  Code (*deregister_memory)(void* comm, void* memory);
  Code (*isend)(void* sender, void* data, size_t bytes, int tag, void* memory, void** request);
  Code (*irecv)(void* receiver, int count, void** data, size_t* bytes, int* tags, void** memories,
                void** request);
  Code (*iflush)(void* receiver, int count, void** data, int* bytes, void** memories,
                 void** request);
  Code (*test)(void* request, int* done, int* bytes);
  Code (*close_send)(void* sender);
  Code (*close_receive)(void* receiver);
  Code (*close_listen)(void* listener);
  Code (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Code (*irecv_consumed)(void* receiver, int count, void* request);
  Code (*make_virtual_device)(int* device, VirtualProperties<4>* properties);
};
static_assert(sizeof(NetV9) == 20 * sizeof(void*));

// ncclNet_v8_t: sizes are ints.
struct NetV8 {
  const char* name;
  Code (*init)(Logger logger);
  Code (*devices)(int* count);
  Code (*get_properties)(int device, PropertiesV8* properties);
  Code (*listen)(int device, void* handle, void** listener);
  Code (*connect)(int device, void* handle, void** sender, void** device_comm);
  Code (*accept)(void* listener, void** receiver, void** device_comm);
  Code (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Code (*register_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                           void** memory);
  Code (*deregister_memory)(void* comm, void* memory);
  Code (*isend)(void* sender, void* data, int bytes, int tag, void* memory, void** request);
  Code (*irecv)(void* receiver, int count, void** data, int* bytes, int* tags, void** memories,
                void** request);
  Code (*iflush)(void* receiver, int count, void** data, int* bytes, void** memories,
                 void** request);
  Code (*test)(void* request, int* done, int* bytes);
  Code (*close_send)(void* sender);
  Code (*close_receive)(void* receiver);
  Code (*close_listen)(void* listener);
  Code (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Code (*irecv_consumed)(void* receiver, int count, void* request);
};
static_assert(sizeof(NetV8) == 19 * sizeof(void*));

}  // namespace urma::nccl
