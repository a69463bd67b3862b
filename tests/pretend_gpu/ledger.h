// The GPUs of the machine, and who uses how much memory of which: a file that processes share, as they share a real
// GPU, and that NVML reads.
//
// Without PRETEND_GPU_LEDGER each process has the GPUs to itself.
#ifndef PRETEND_GPU_LEDGER_H_
#define PRETEND_GPU_LEDGER_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace pretend_gpu {

inline std::string Setting(const char* name, const std::string& otherwise) {
  const char* value = getenv((std::string("PRETEND_GPU_") + name).c_str());
  return value && *value ? value : otherwise;
}
inline double Setting(const char* name, double otherwise) {
  std::string value = Setting(name, std::string());
  return value.empty() ? otherwise : atof(value.c_str());
}

inline std::string BusId(int device) { return "0000:0" + std::to_string(device + 1) + ":00.0"; }
inline std::string Uuid(int device) {
  return "GPU-" + std::string(1, 'a' + device) + "0000000-0000-0000-0000-000000000000";
}

namespace ledger {

// A context: a process on a GPU. _ROW in __init__.py describes these rows too.
struct Row {
  std::atomic<int32_t> pid;  // 0 while the row is free
  int32_t device;            // place on the bus
  std::atomic<int64_t> used_bytes;
  std::atomic<int64_t> peak_bytes;
};
constexpr int kRows = 256;

inline Row* Rows() {
  static Row* rows = [] {
    std::string path = Setting("LEDGER", std::string());
    size_t size = kRows * sizeof(Row);
    int flags = MAP_SHARED | (path.empty() ? MAP_ANONYMOUS : 0);
    int file = path.empty() ? -1 : open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file >= 0 && ftruncate(file, size)) abort();
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED) abort();
    if (file >= 0) close(file);
    return static_cast<Row*>(memory);
  }();
  return rows;
}

inline bool IsAlive(const Row& row) { return row.pid != 0 && (row.pid == getpid() || kill(row.pid, 0) == 0); }

inline int64_t UsedBytes(int device) {
  int64_t used = 0;
  for (Row* row = Rows(); row < Rows() + kRows; ++row)
    if (row->device == device && IsAlive(*row)) used += row->used_bytes;
  return used;
}

// Take a row for this process; rows of ended processes stay, so that a test can read them.
inline Row* Open(int device) {
  for (Row* row = Rows(); row < Rows() + kRows; ++row) {
    int32_t nobody = 0;
    if (!row->pid.compare_exchange_strong(nobody, getpid())) continue;
    row->device = device;
    return row;
  }
  abort();
}

}  // namespace ledger
}  // namespace pretend_gpu

#endif  // PRETEND_GPU_LEDGER_H_
