// The device as TensorFlow's StreamExecutor C API wants it: settings, memory, copies, and which GPUs there are.
//
// Device memory is host memory.

#include <string.h>

#include <algorithm>
#include <sstream>

#include "pretend_gpu.h"

namespace pretend_gpu {

namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Settings ReadSettings() {
  Settings found;
  found.memory_bytes = static_cast<int64_t>(Setting("MEMORY_MB", 4096) * 1e6);
  found.kernel_ns = static_cast<int64_t>(Setting("KERNEL_US", 5) * 1e3);
  found.gflops = Setting("GFLOPS", 1000);
  found.memory_gbps = Setting("MEMORY_GBPS", 300);
  found.copy_gbps = Setting("COPY_GBPS", 12);
  found.skip_flop = Setting("SKIP_MFLOP", 50) * 1e6;
  found.waits_for_kernels = Setting("WAITS_FOR_KERNELS", 0) != 0;
  found.has_trace = Setting("HAS_TRACE", 1) != 0;
  found.profiler_bytes = static_cast<int64_t>(Setting("PROFILER_MB", 0) * 1e6);
  found.profiler_error = Setting("PROFILER_ERROR", std::string());
  found.profiler_warning = Setting("PROFILER_WARNING", std::string());
  for (const std::string& entry : Split(Setting("OP_US", std::string()), ',')) {
    size_t equals = entry.find('=');
    found.op_ns[entry.substr(0, equals)] = static_cast<int64_t>(atof(entry.c_str() + equals + 1) * 1e3);
  }
  return found;
}

}  // namespace

namespace {
std::atomic<const Settings*> current{nullptr};
}

const Settings& GetSettings() { return *current; }

namespace {

void Allocate(const SP_Device* device, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  *memory = {SP_DEVICE_MEMORY_BASE_STRUCT_SIZE};  // without an address: there is not enough
  ledger::Row& row = *Of(device)->row;
  if (ledger::UsedBytes(row.device) + static_cast<int64_t>(size) > GetSettings().memory_bytes) return;
  if (posix_memalign(&memory->opaque, 256, size)) return;  // costs nothing until somebody writes into it
  memory->size = size;
  row.used_bytes += size;
  row.peak_bytes = std::max(row.peak_bytes.load(), row.used_bytes.load());
}

void Deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  free(memory->opaque);
  Of(device)->row->used_bytes -= memory->size;
  *memory = {SP_DEVICE_MEMORY_BASE_STRUCT_SIZE};
}

void* AllocateOnHost(const SP_Device*, uint64_t size) {
  void* memory = nullptr;
  return posix_memalign(&memory, 64, size) ? nullptr : memory;
}
void FreeOnHost(const SP_Device*, void* memory) { free(memory); }

TF_Bool AllocatorStats(const SP_Device*, SP_AllocatorStats*) { return false; }
TF_Bool MemoryUsage(const SP_Device* device, int64_t* free_bytes, int64_t* total_bytes) {
  *total_bytes = GetSettings().memory_bytes;
  *free_bytes = *total_bytes - ledger::UsedBytes(Of(device)->index);
  return true;
}

// ---- copies ----

std::atomic<int64_t> copies_to_host{0};

void CopyToHost(const SP_Device*, SP_Stream stream, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                TF_Status* status) {
  ++copies_to_host;
  memcpy(to, from->opaque, size);
  Launch(stream, CopyNs(size, GetSettings().copy_gbps), {Work::kCopyToHost, "", "", static_cast<int64_t>(size)});
  Ok(status);
}
void CopyToDevice(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                  TF_Status* status) {
  memcpy(to->opaque, from, size);
  Launch(stream, CopyNs(size, GetSettings().copy_gbps), {Work::kCopyToDevice, "", "", static_cast<int64_t>(size)});
  Ok(status);
}
void CopyOnDevice(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                  uint64_t size, TF_Status* status) {
  memcpy(to->opaque, from->opaque, size);
  Launch(stream, CopyNs(size, GetSettings().memory_gbps), {Work::kCopyOnDevice, "", "", static_cast<int64_t>(size)});
  Ok(status);
}

void WaitAndCopyToHost(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                       TF_Status* status) {
  ++copies_to_host;
  SleepUntil(std::max(NowNs(), DoneNs(Of(device))) + CopyNs(size, GetSettings().copy_gbps));
  memcpy(to, from->opaque, size);
  Ok(status);
}
void WaitAndCopyToDevice(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                         TF_Status* status) {
  SleepUntil(std::max(NowNs(), DoneNs(Of(device))) + CopyNs(size, GetSettings().copy_gbps));
  memcpy(to->opaque, from, size);
  Ok(status);
}
void WaitAndCopyOnDevice(const SP_Device* device, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                         uint64_t size, TF_Status* status) {
  SleepUntil(DoneNs(Of(device)));
  memcpy(to->opaque, from->opaque, size);
  Ok(status);
}

void Filled(SP_Stream stream, uint64_t size, TF_Status* status) {
  Launch(stream, CopyNs(size, GetSettings().memory_gbps), {Work::kFill, "", "", static_cast<int64_t>(size)});
  Ok(status);
}
void FillBytes(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* memory, uint8_t value, uint64_t size,
               TF_Status* status) {
  memset(memory->opaque, value, size);
  Filled(stream, size, status);
}
void FillZeros(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint64_t size,
               TF_Status* status) {
  FillBytes(device, stream, memory, 0, size, status);
}
void FillWords(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* memory, uint32_t value, uint64_t size,
               TF_Status* status) {
  std::fill_n(static_cast<uint32_t*>(memory->opaque), size / sizeof value, value);
  Filled(stream, size, status);
}

// ---- which GPUs there are ----

// The places on the bus of the GPUs that CUDA_VISIBLE_DEVICES shows, in its order.
std::vector<int> VisibleGpus() {
  int count = static_cast<int>(Setting("COUNT", 1));
  const char* shown = getenv("CUDA_VISIBLE_DEVICES");
  std::vector<int> found;
  if (!shown) {
    for (int index = 0; index < count; ++index) found.push_back(index);
    return found;
  }
  for (const std::string& entry : Split(shown, ',')) {
    int index = -1;
    if (entry.rfind("GPU-", 0) == 0) {  // the beginning of a UUID
      for (int each = 0; each < count; ++each)
        if (Uuid(each).rfind(entry, 0) == 0) index = each;
    } else {
      index = atoi(entry.c_str());
    }
    if (index < 0 || index >= count) break;  // CUDA ignores what follows a wrong entry
    found.push_back(index);
  }
  return found;
}

void CountDevices(const SP_Platform*, int* count, TF_Status* status) {
  *count = static_cast<int>(VisibleGpus().size());
  Ok(status);
}

void CreateDevice(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  auto* device = new Device{static_cast<int>(params->ordinal), VisibleGpus()[params->ordinal]};
  device->bus_id = BusId(device->index);
  device->row = ledger::Open(device->index);  // CUDA makes its context here
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->device_handle = device;
  params->device->hardware_name = "Pretend GPU";
  params->device->device_vendor = "Pipeline Lab";
  params->device->pci_bus_id = device->bus_id.c_str();
  Ok(status);
}
void DestroyDevice(const SP_Platform*, SP_Device* device) {
  delete Of(device);
  device->device_handle = nullptr;
}

int32_t NumaNode(const SP_Device*) { return 0; }
int64_t MemoryBandwidth(const SP_Device*) { return static_cast<int64_t>(GetSettings().memory_gbps * 1e9); }
double Gflops(const SP_Device*) { return GetSettings().gflops; }
void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  *params->device_fns = {SP_DEVICE_FNS_STRUCT_SIZE, nullptr, NumaNode, MemoryBandwidth, Gflops};
  Ok(status);
}
void DestroyDeviceFns(const SP_Platform*, SP_DeviceFns*) {}

void CreateExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status* status) {
  SP_StreamExecutor& executor = *params->stream_executor;
  executor = {SP_STREAMEXECUTOR_STRUCT_SIZE};
  executor.allocate = Allocate;
  executor.deallocate = Deallocate;
  executor.host_memory_allocate = AllocateOnHost;
  executor.host_memory_deallocate = FreeOnHost;
  executor.get_allocator_stats = AllocatorStats;
  executor.device_memory_usage = MemoryUsage;
  executor.memcpy_dtoh = CopyToHost;
  executor.memcpy_htod = CopyToDevice;
  executor.memcpy_dtod = CopyOnDevice;
  executor.sync_memcpy_dtoh = WaitAndCopyToHost;
  executor.sync_memcpy_htod = WaitAndCopyToDevice;
  executor.sync_memcpy_dtod = WaitAndCopyOnDevice;
  executor.mem_zero = FillZeros;
  executor.memset = FillBytes;
  executor.memset32 = FillWords;
  SetStreamFunctions(executor);
  Ok(status);
}
void DestroyExecutor(const SP_Platform*, SP_StreamExecutor*) {}

void DestroyPlatform(SP_Platform*) {}
void DestroyPlatformFns(SP_PlatformFns*) {}

}  // namespace
}  // namespace pretend_gpu

// Read the settings from the environment again, in a process that serves several tests.
extern "C" __attribute__((visibility("default"))) void PretendGpuReadSettings() {
  pretend_gpu::current = new pretend_gpu::Settings(pretend_gpu::ReadSettings());  // the old ones may be in use
}

// Copies that a host waits for, or may wait for, since the process began.
extern "C" __attribute__((visibility("default"))) int64_t PretendGpuCopiesToHost() {
  return pretend_gpu::copies_to_host;
}

// How long the device worked by its own clock since the process began, copies from and to the host left out; and how long
// it took copies from the host.
extern "C" __attribute__((visibility("default"))) int64_t PretendGpuWorkNs() {
  using namespace pretend_gpu;
  return WorkNs(Work::kKernel) + WorkNs(Work::kCopyOnDevice) + WorkNs(Work::kFill);
}
extern "C" __attribute__((visibility("default"))) int64_t PretendGpuCopiesToDeviceNs() {
  return pretend_gpu::WorkNs(pretend_gpu::Work::kCopyToDevice);
}

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                                                     TF_Status* status) {
  using namespace pretend_gpu;
  PretendGpuReadSettings();
  params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->major_version = SE_MAJOR;
  params->minor_version = SE_MINOR;
  params->patch_version = SE_PATCH;
  params->destroy_platform = DestroyPlatform;
  params->destroy_platform_fns = DestroyPlatformFns;
  SP_Platform& platform = *params->platform;
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform.name = "PRETEND_GPU";  // TensorFlow wants capitals
  platform.type = "GPU";  // TensorFlow's devices, planes and allocators are then named as CUDA's
  platform.use_bfc_allocator = true;
  SP_PlatformFns& functions = *params->platform_fns;
  functions = {SP_PLATFORM_FNS_STRUCT_SIZE};
  functions.get_device_count = CountDevices;
  functions.create_device = CreateDevice;
  functions.destroy_device = DestroyDevice;
  functions.create_device_fns = CreateDeviceFns;
  functions.destroy_device_fns = DestroyDeviceFns;
  functions.create_stream_executor = CreateExecutor;
  functions.destroy_stream_executor = DestroyExecutor;
  SetTimerFunctions(functions);
  RegisterProfiler();
  Ok(status);
}
