// What the parts of the pretend GPU share: settings, clock, devices, streams, and the work that the profiler shows.
#ifndef PRETEND_GPU_H_
#define PRETEND_GPU_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ledger.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace pretend_gpu {

// Times are nanoseconds since the epoch, as the profiler counts them.
int64_t NowNs();
void SleepUntil(int64_t when_ns);

// Read from the environment; PretendGpu in __init__.py says what each of them means.
struct Settings {
  int64_t memory_bytes;
  int64_t kernel_ns;
  std::map<std::string, int64_t> op_ns;
  double gflops, memory_gbps, copy_gbps, skip_flop;
  bool waits_for_kernels, has_trace;
  std::string profiler_error, profiler_warning;
  int64_t profiler_bytes;
};
const Settings& GetSettings();

// A GPU that the process sees: TensorFlow counts the visible ones, the bus all of them.
struct Device {
  int ordinal, index;
  std::string bus_id;
  ledger::Row* row;  // of this process
};

// A piece of work of a stream.
struct Work {
  enum Kind { kKernel, kCopyToDevice, kCopyToHost, kCopyOnDevice, kFill, kKinds };

  Kind kind;
  std::string name;  // of a kernel
  std::string op;    // node and op that launched it, as "name:Op"
  int64_t bytes;     // copied or filled
};

// Work with its place on the virtual clock.
struct TracedWork {
  Work work;
  int device, stream;
  int64_t launch_ns, start_ns, end_ns;
  int thread;
  uint64_t correlation_id;
};

// How long a copy takes.
int64_t CopyNs(uint64_t bytes, double gbps);

// Append work to a stream: it begins when the work before it has ended.
void Launch(SP_Stream stream, int64_t duration_ns, Work work);

// How long all work of a kind has taken that was launched since the process began.
int64_t WorkNs(Work::Kind kind);

// When everything that was launched on a device, or on all of them, will have ended.
int64_t DoneNs(const Device* device = nullptr);

inline Device* Of(const SP_Device* device) { return static_cast<Device*>(device->device_handle); }
inline void Ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

// The part of the device that streams.cc has.
void SetStreamFunctions(SP_StreamExecutor& executor);
void SetTimerFunctions(SP_PlatformFns& functions);

// The profiler, and its record.
void RegisterProfiler();
void StartTrace();
std::vector<TracedWork> StopTrace();

}  // namespace pretend_gpu

// TensorFlow declares this type; the plug-in defines it.
struct SP_Stream_st {
  static constexpr int kQueue = 1024;  // launches that CUDA queues before the host has to wait

  pretend_gpu::Device* device;
  int id;
  std::mutex mutex;
  int64_t ready_ns = 0;  // when its last work ends
  int64_t launches = 0;
  int64_t ends_ns[kQueue] = {};  // of the last launches

  int64_t ReadyNs() {
    std::lock_guard<std::mutex> lock(mutex);
    return ready_ns;
  }
  void NotBefore(int64_t when_ns) {
    std::lock_guard<std::mutex> lock(mutex);
    if (when_ns > ready_ns) ready_ns = when_ns;
  }
};

#endif  // PRETEND_GPU_H_
