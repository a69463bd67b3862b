// Streams, events and the host's waiting for them, on a clock of the stream's own.
//
// Work is done when it is launched; only its time is pretended. The clock of its stream says when it would end, and
// whoever waits for it sleeps until then.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <queue>
#include <set>
#include <thread>

#include "pretend_gpu.h"

struct SP_Event_st {
  std::atomic<int64_t> at_ns{0};
};
struct SP_Timer_st {
  int64_t start_ns = 0, stop_ns = 0;
};

namespace pretend_gpu {

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void SleepUntil(int64_t when_ns) {
  for (int64_t left_ns; (left_ns = when_ns - NowNs()) > 0;) {
    timespec left{left_ns / 1'000'000'000LL, left_ns % 1'000'000'000LL};
    nanosleep(&left, nullptr);
  }
}

namespace {

struct Shared {
  std::mutex mutex;
  std::set<SP_Stream> streams;
  int next_stream = 13;  // CUDA numbers TensorFlow's streams from about here
  bool is_tracing = false;
  std::vector<TracedWork> trace;
  uint64_t launches = 0;
  int64_t work_ns[Work::kKinds] = {};
};

Shared& GetShared() {
  static Shared* shared = new Shared;
  return *shared;
}

constexpr int64_t kLaunchLatencyNs = 2000;

}  // namespace

int64_t CopyNs(uint64_t bytes, double gbps) {
  return GetSettings().kernel_ns / 2 + static_cast<int64_t>(bytes / gbps);
}

void Launch(SP_Stream stream, int64_t duration_ns, Work work) {
  int64_t launch_ns = NowNs(), start_ns, end_ns, room_ns;
  {
    std::lock_guard<std::mutex> lock(stream->mutex);
    start_ns = std::max(launch_ns + kLaunchLatencyNs, stream->ready_ns);
    end_ns = stream->ready_ns = start_ns + duration_ns;
    int64_t& oldest_ns = stream->ends_ns[stream->launches++ % SP_Stream_st::kQueue];
    room_ns = oldest_ns;
    oldest_ns = end_ns;
  }
  {
    Shared& shared = GetShared();
    std::lock_guard<std::mutex> lock(shared.mutex);
    ++shared.launches;
    shared.work_ns[work.kind] += duration_ns;
    if (shared.is_tracing) {
      int thread = static_cast<int>(syscall(SYS_gettid));
      shared.trace.push_back({std::move(work), stream->device->ordinal, stream->id, launch_ns, start_ns, end_ns, thread,
                              shared.launches});
    }
  }
  SleepUntil(GetSettings().waits_for_kernels ? end_ns : room_ns);
}

int64_t WorkNs(Work::Kind kind) {
  Shared& shared = GetShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  return shared.work_ns[kind];
}

int64_t DoneNs(const Device* device) {
  Shared& shared = GetShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  int64_t done_ns = 0;
  for (SP_Stream stream : shared.streams)
    if (!device || stream->device == device) done_ns = std::max(done_ns, stream->ReadyNs());
  return done_ns;
}

void StartTrace() {
  Shared& shared = GetShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  shared.trace.clear();
  shared.is_tracing = true;
}

std::vector<TracedWork> StopTrace() {
  Shared& shared = GetShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  shared.is_tracing = false;
  return std::move(shared.trace);
}

namespace {

void CreateStream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  Shared& shared = GetShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  *stream = new SP_Stream_st{Of(device), shared.next_stream++};
  shared.streams.insert(*stream);
  Ok(status);
}

void DestroyStream(const SP_Device*, SP_Stream stream) {
  Shared& shared = GetShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  shared.streams.erase(stream);
  delete stream;
}

void WaitForStream(const SP_Device*, SP_Stream stream, SP_Stream other, TF_Status* status) {
  stream->NotBefore(other->ReadyNs());
  Ok(status);
}

void StreamStatus(const SP_Device*, SP_Stream, TF_Status* status) { Ok(status); }

void CreateEvent(const SP_Device*, SP_Event* event, TF_Status* status) {
  *event = new SP_Event_st;
  Ok(status);
}
void DestroyEvent(const SP_Device*, SP_Event event) { delete event; }
SE_EventStatus EventStatus(const SP_Device*, SP_Event event) {
  return NowNs() >= event->at_ns ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}
void RecordEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status* status) {
  event->at_ns = stream->ReadyNs();
  Ok(status);
}
void WaitForEvent(const SP_Device* const, SP_Stream stream, SP_Event event, TF_Status* const status) {
  stream->NotBefore(event->at_ns);
  Ok(status);
}

void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  *timer = new SP_Timer_st;
  Ok(status);
}
void DestroyTimer(const SP_Device*, SP_Timer timer) { delete timer; }
void StartTimer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  timer->start_ns = std::max(NowNs(), stream->ReadyNs());
  Ok(status);
}
void StopTimer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  timer->stop_ns = std::max(NowNs(), stream->ReadyNs());
  Ok(status);
}
uint64_t TimerNs(SP_Timer timer) { return timer->stop_ns - timer->start_ns; }
void CreateTimerFns(const SP_Platform*, SP_TimerFns* functions, TF_Status* status) {
  *functions = {SP_TIMER_FNS_STRUCT_SIZE, nullptr, TimerNs};
  Ok(status);
}
void DestroyTimerFns(const SP_Platform*, SP_TimerFns*) {}

// ---- waiting for the device ----

void BlockForEvent(const SP_Device*, SP_Event event, TF_Status* status) {
  SleepUntil(event->at_ns);
  Ok(status);
}
void BlockForStream(const SP_Device*, SP_Stream stream, TF_Status* status) {
  SleepUntil(stream->ReadyNs());
  Ok(status);
}
void BlockForDevice(const SP_Device* device, TF_Status* status) {
  SleepUntil(DoneNs(Of(device)));
  Ok(status);
}

// Runs what TensorFlow wants to be called when a stream gets to a point.
class Callbacks {
 public:
  static Callbacks& Get() {
    static Callbacks* callbacks = new Callbacks;
    return *callbacks;
  }
  void Add(int64_t at_ns, SE_StatusCallbackFn function, void* argument) {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push({at_ns, function, argument});
    changed_.notify_one();
  }

 private:
  struct Callback {
    int64_t at_ns;
    SE_StatusCallbackFn function;
    void* argument;
    bool operator<(const Callback& other) const { return at_ns > other.at_ns; }  // the earliest is on top
  };

  Callbacks() { std::thread([this] { Run(); }).detach(); }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      int64_t left_ns = waiting_.top().at_ns - NowNs();
      if (left_ns > 0) {
        changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
        continue;
      }
      Callback due = waiting_.top();
      waiting_.pop();
      lock.unlock();
      TF_Status* status = TF_NewStatus();
      due.function(due.argument, status);
      TF_DeleteStatus(status);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Callback> waiting_;
};

TF_Bool AddCallback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn function, void* argument) {
  Callbacks::Get().Add(stream->ReadyNs(), function, argument);
  return true;
}

}  // namespace

void SetStreamFunctions(SP_StreamExecutor& executor) {
  executor.create_stream = CreateStream;
  executor.destroy_stream = DestroyStream;
  executor.create_stream_dependency = WaitForStream;
  executor.get_stream_status = StreamStatus;
  executor.create_event = CreateEvent;
  executor.destroy_event = DestroyEvent;
  executor.get_event_status = EventStatus;
  executor.record_event = RecordEvent;
  executor.wait_for_event = WaitForEvent;
  executor.create_timer = CreateTimer;
  executor.destroy_timer = DestroyTimer;
  executor.start_timer = StartTimer;
  executor.stop_timer = StopTimer;
  executor.block_host_for_event = BlockForEvent;
  executor.block_host_until_done = BlockForStream;
  executor.synchronize_all_activity = BlockForDevice;
  executor.host_callback = AddCallback;
}

void SetTimerFunctions(SP_PlatformFns& functions) {
  functions.create_timer_fns = CreateTimerFns;
  functions.destroy_timer_fns = DestroyTimerFns;
}

}  // namespace pretend_gpu
