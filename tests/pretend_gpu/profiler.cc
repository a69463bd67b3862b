// What CUPTI would tell TensorFlow's profiler: the work of each stream, and the calls that launched it.

#include <algorithm>
#include <map>
#include <set>

#include "pretend_gpu.h"
#include "tsl/profiler/lib/profiler_factory.h"
#include "tsl/profiler/lib/profiler_interface.h"
#include "tsl/profiler/protobuf/xplane.pb.h"

namespace pretend_gpu {
namespace {

using tensorflow::profiler::XEvent;
using tensorflow::profiler::XLine;
using tensorflow::profiler::XPlane;
using tensorflow::profiler::XSpace;

// What the profiler calls work of a kind: the group of its line, its event, and the driver's call that launched it.
struct Words {
  const char *group, *event, *call;
};
Words WordsOf(Work::Kind kind) {
  switch (kind) {
    case Work::kKernel: return {"Compute", "", "cuLaunchKernel"};
    case Work::kCopyToDevice: return {"MemcpyH2D", "MemcpyH2D", "cuMemcpyHtoDAsync_v2"};
    case Work::kCopyToHost: return {"MemcpyD2H", "MemcpyD2H", "cuMemcpyDtoHAsync_v2"};
    case Work::kCopyOnDevice: return {"MemcpyD2D", "MemcpyD2D", "cuMemcpyDtoDAsync_v2"};
    case Work::kFill: return {"Memset", "Memset", "cuMemsetD8Async"};
  }
  abort();
}

// A plane that gives names their ids.
class Plane {
 public:
  Plane(XSpace& space, int64_t id, const std::string& name) : plane_(*space.add_planes()) {
    plane_.set_id(id);
    plane_.set_name(name);
  }

  XLine& Line(int64_t id, int64_t start_ns) {
    auto [found, is_new] = lines_.try_emplace(id, nullptr);
    if (is_new) {
      found->second = plane_.add_lines();
      found->second->set_id(id);
      found->second->set_timestamp_ns(start_ns);
    }
    return *found->second;
  }

  XEvent& Event(XLine& line, const std::string& name, int64_t start_ns, int64_t end_ns) {
    XEvent& event = *line.add_events();
    event.set_metadata_id(IdOf(name, events_, *plane_.mutable_event_metadata()));
    event.set_offset_ps((start_ns - line.timestamp_ns()) * 1000);
    event.set_duration_ps((end_ns - start_ns) * 1000);
    return event;
  }

  void Stat(XEvent& event, const char* name, uint64_t value) { NewStat(event, name).set_uint64_value(value); }
  void Stat(XEvent& event, const char* name, const std::string& value) { NewStat(event, name).set_str_value(value); }

 private:
  template <class Metadata>
  static int64_t IdOf(const std::string& name, std::map<std::string, int64_t>& ids, Metadata& metadata) {
    auto [found, is_new] = ids.try_emplace(name, ids.size() + 1);
    if (is_new) {
      metadata[found->second].set_id(found->second);
      metadata[found->second].set_name(name);
    }
    return found->second;
  }

  tensorflow::profiler::XStat& NewStat(XEvent& event, const char* name) {
    tensorflow::profiler::XStat& stat = *event.add_stats();
    stat.set_metadata_id(IdOf(name, stats_, *plane_.mutable_stat_metadata()));
    return stat;
  }

  XPlane& plane_;
  std::map<int64_t, XLine*> lines_;
  std::map<std::string, int64_t> events_, stats_;
};

void AddDevicePlane(XSpace& space, int device, const std::vector<TracedWork>& trace) {
  Plane plane(space, device + 1, "/device:GPU:" + std::to_string(device));
  int64_t first_ns = INT64_MAX;
  std::map<int, std::set<std::string>> groups;
  for (const TracedWork& each : trace) {
    first_ns = std::min(first_ns, each.start_ns);
    groups[each.stream].insert(WordsOf(each.work.kind).group);
  }
  for (const auto& [stream, names] : groups) {
    std::string joined;
    for (const std::string& name : names) joined += (joined.empty() ? "" : ",") + name;
    plane.Line(stream, first_ns).set_name("Stream #" + std::to_string(stream) + "(" + joined + ")");
  }
  for (const TracedWork& each : trace) {
    const Work& work = each.work;
    std::string name = work.kind == Work::kKernel ? work.name : WordsOf(work.kind).event;
    XEvent& event = plane.Event(plane.Line(each.stream, first_ns), name, each.start_ns, each.end_ns);
    plane.Stat(event, "correlation_id", each.correlation_id);
    if (work.kind == Work::kKernel) {
      plane.Stat(event, "tf_op", work.op);
      plane.Stat(event, "kernel_details",
                 "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:128,1,1 occ_pct:50");
    } else {
      plane.Stat(event, work.kind == Work::kFill ? "memset_details" : "memcpy_details",
                 "kind_src:pageable kind_dst:device size:" + std::to_string(work.bytes) + " dest:0 async:1");
    }
  }
}

void AddCalls(XSpace& space, const std::vector<TracedWork>& trace) {
  constexpr int64_t kCallNs = 1500;
  Plane plane(space, 100, "/host:CUPTI");
  for (const TracedWork& each : trace) {
    XLine& line = plane.Line(each.thread, each.launch_ns);
    XEvent& event = plane.Event(line, WordsOf(each.work.kind).call, each.launch_ns, each.launch_ns + kCallNs);
    plane.Stat(event, "correlation_id", each.correlation_id);
  }
}

// TensorFlow's C API for profilers hands on planes only, and not what CUPTI says of itself; this interface does both.
class Profiler : public tsl::profiler::ProfilerInterface {
 public:
  absl::Status Start() override {
    static auto* cupti = new std::vector<char>(GetSettings().profiler_bytes, 1);  // loaded by the first session
    (void)cupti;
    StartTrace();
    return absl::OkStatus();
  }

  absl::Status Stop() override {
    trace_ = StopTrace();
    stopped_ns_ = NowNs();
    return absl::OkStatus();
  }

  absl::Status CollectData(XSpace* space) override {
    const Settings& settings = GetSettings();
    if (!settings.profiler_error.empty()) space->add_errors(settings.profiler_error);
    if (!settings.profiler_warning.empty()) space->add_warnings(settings.profiler_warning);
    if (!settings.has_trace) return absl::OkStatus();
    std::map<int, std::vector<TracedWork>> by_device;
    // CUPTI does not wait for the device: of what still runs, it has the call only.
    for (const TracedWork& each : trace_)
      if (each.end_ns <= stopped_ns_) by_device[each.device].push_back(each);
    for (const auto& [device, work] : by_device) AddDevicePlane(*space, device, work);
    AddCalls(*space, trace_);
    return absl::OkStatus();
  }

 private:
  std::vector<TracedWork> trace_;
  int64_t stopped_ns_ = 0;
};

}  // namespace

void RegisterProfiler() {
  tsl::profiler::RegisterProfilerFactory(
      [](const tensorflow::ProfileOptions&) { return std::make_unique<Profiler>(); });
}

}  // namespace pretend_gpu
