// A pretend libnvidia-ml.so.1: the pretend GPUs as the driver shows them, in the order of the bus.

#include <stdio.h>


#include "ledger.h"

namespace {

using namespace pretend_gpu;

struct Memory {
  unsigned long long total, free, used;
};
struct Load {
  unsigned gpu, memory;
};
struct Process {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

constexpr int kInvalidArgument = 2, kNotFound = 6, kInsufficientSize = 7;
constexpr int kMost = 16;
int gpus[kMost];  // a handle points to its place here

int Count() { return static_cast<int>(Setting("COUNT", 1)); }
int IndexOf(const int* handle) { return static_cast<int>(handle - gpus); }

// The error that PRETEND_GPU_NVML_ERRORS ("function=code,…") wants of a function; 0 without.
int ErrorOf(const char* function) {
  std::string wanted = "," + Setting("NVML_ERRORS", std::string()), entry = std::string(",") + function + "=";
  size_t at = wanted.find(entry);
  return at == std::string::npos ? 0 : atoi(wanted.c_str() + at + entry.size());
}

int HandleOf(int index, int** handle) {
  if (index < 0 || index >= Count()) return kInvalidArgument;
  *handle = &gpus[index];
  return 0;
}

int Print(char* text, unsigned size, const std::string& value) {
  snprintf(text, size, "%s", value.c_str());
  return 0;
}

}  // namespace

#define NVML(name, ...)                                        \
  extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__) { \
    if (int error = ErrorOf(#name)) return error;

NVML(nvmlInit_v2) return 0; }
NVML(nvmlInitWithFlags, unsigned) return 0; }
NVML(nvmlShutdown) return 0; }
NVML(nvmlSystemGetDriverVersion, char* text, unsigned size) return Print(text, size, "pretend"); }
NVML(nvmlDeviceGetCount_v2, unsigned* count) *count = Count(); return 0; }
NVML(nvmlDeviceGetHandleByIndex_v2, unsigned index, int** handle) return HandleOf(index, handle); }
NVML(nvmlDeviceGetHandleByUUID, const char* uuid, int** handle)
  for (int index = 0; index < Count(); ++index)
    if (Uuid(index) == uuid) return HandleOf(index, handle);
  return kNotFound;
}
NVML(nvmlDeviceGetHandleByPciBusId_v2, const char* bus_id, int** handle)
  for (int index = 0; index < Count(); ++index)
    if (BusId(index) == bus_id) return HandleOf(index, handle);
  return kNotFound;
}
NVML(nvmlDeviceGetName, int*, char* text, unsigned size) return Print(text, size, "Pretend GPU"); }
NVML(nvmlDeviceGetUUID, int* handle, char* text, unsigned size) return Print(text, size, Uuid(IndexOf(handle))); }
NVML(nvmlDeviceGetMemoryInfo, int* handle, Memory* memory)
  memory->total = static_cast<unsigned long long>(Setting("MEMORY_MB", 4096) * 1e6);
  memory->used = ledger::UsedBytes(IndexOf(handle));
  memory->free = memory->total - memory->used;
  return 0;
}
NVML(nvmlDeviceGetUtilizationRates, int*, Load* load) *load = {50, 10}; return 0; }
NVML(nvmlDeviceGetClockInfo, int* handle, int, unsigned* mhz) *mhz = 1000 + IndexOf(handle); return 0; }
NVML(nvmlDeviceGetMaxClockInfo, int*, int, unsigned* mhz) *mhz = 2000; return 0; }
NVML(nvmlDeviceGetCurrentClocksThrottleReasons, int*, unsigned long long* reasons)
  *reasons = static_cast<unsigned long long>(Setting("CLOCK_REASONS", 0));
  return 0;
}
NVML(nvmlDeviceGetComputeRunningProcesses_v3, int* handle, unsigned* count, Process* found)
  unsigned room = *count;
  *count = 0;
  for (ledger::Row* row = ledger::Rows(); row < ledger::Rows() + ledger::kRows; ++row) {
    if (row->device != IndexOf(handle) || !ledger::IsAlive(*row)) continue;
    unsigned long long used = row->used_bytes;
    if (*count < room) found[*count] = {static_cast<unsigned>(row->pid), used};
    ++*count;
  }
  return *count > room ? kInsufficientSize : 0;
}
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int) { return "Pretend error"; }
