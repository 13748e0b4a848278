// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The functions of the fake libcuda that tests call: those of CUDA's driver interface, which return
// 0 or an error, and below them some that only the fake has.
extern "C" {
int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);
int cuDeviceGet(int* device, int number);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(uint64_t* at, size_t bytes);
int cuMemFree_v2(uint64_t at);
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes);
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes);

// The retained contexts, streams and pinned ranges of this process.
int fake_cuda_held();
// From now on waiting for a stream fails, as after an error of a kernel.
void fake_cuda_break(int broken);
}
