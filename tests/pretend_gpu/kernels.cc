// Kernels: every GPU kernel of the wheel that has a CPU twin is taken over.
// The twin computes, and the clock of the stream moves on.
//
// The definitions are TensorFlow's own, so that placement, types and the arguments in host memory are as on a real GPU.

#include <algorithm>
#include <set>

#include "pretend_gpu.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace pretend_gpu {
namespace {

using namespace tensorflow;

// Kernels that stay TensorFlow's own: they launch nothing on a device, or deal with the device and the runtime
// themselves. A star stands for any ending.
constexpr const char* kOwn[] = {
    // values that are passed on, or are in host memory
    "_Arg", "_Retval", "_Device*", "Const", "_EagerConst", "HostConst", "ImmutableConst", "Identity*", "RefIdentity",
    "StopGradient", "PreventGradient", "GuaranteeConst", "Placeholder", "FakeParam", "Shape*", "Rank", "Size",
    "Reshape", "ExpandDims", "Squeeze", "Assert", "BroadcastArgs", "BroadcastGradientArgs", "DeviceIndex", "NoOp",
    "_Nop",
    // control flow and functions
    "Switch", "_SwitchN", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger", "RefSwitch",
    "RefMerge", "RefEnter", "RefExit", "RefNextIteration", "*PartitionedCall", "RemoteCall", "SymbolicGradient", "If",
    "While", "Case", "For", "StatelessIf", "StatelessWhile", "StatelessCase", "EagerPyFunc", "PyFunc*",
    // between devices
    "_Send", "_Recv", "_HostSend", "_HostRecv", "Collective*", "Nccl*", "SyncDevice",
    // variables, iterators and other resources
    "VarHandleOp", "_VarHandlesOp", "DestroyResourceOp", "VarIsInitializedOp", "VariableShape", "DisableCopyOnRead",
    "Variable", "VariableV2", "TemporaryVariable", "Iterator*", "MakeIterator", "Anonymous*", "DeleteIterator",
    "MultiDeviceIterator*", "DeleteMultiDeviceIterator", "OneShotIterator", "GeneratorDataset", "PrefetchDataset*",
    "RegisterDataset", "Optional*", "Stack", "StackV2", "StackClose*", "GetSession*", "DeleteSessionTensor",
    "RngReadAndSkip", "_ParallelConcatStart", "_ScopedAllocator*",
    // XLA
    "Xla*", "_Xla*",
};

// Kernels that share the memory of their input nearly always. TensorFlow's own would use CUDA where they do not.
constexpr const char* kTakeNoTime[] = {"AssignVariableOp", "ReadVariableOp", "_ReadVariablesOp"};

bool Matches(const std::string& op, std::string pattern) {
  if (pattern.back() == '*') return op.rfind(pattern.substr(0, pattern.size() - 1), 0) == 0;
  if (pattern.front() != '*') return op == pattern;
  pattern.erase(0, 1);
  return op.size() >= pattern.size() && op.compare(op.size() - pattern.size(), pattern.size(), pattern) == 0;
}

template <size_t n>
bool IsAmong(const std::string& op, const char* const (&patterns)[n]) {
  return std::any_of(patterns, patterns + n, [&](const char* pattern) { return Matches(op, pattern); });
}

// TensorFlow calls the allocator of a plug-in device PluggableDevice_0_bfc; traces of a GPU are known by GPU_0_bfc. Where
// memory is short it waits 10 s for some to come back, which tests have no use for. Both are private, but a private member may
// be named where a template is instantiated explicitly.
using BfcOptions = tsl::BFCAllocator::Options;
template <std::string tsl::BFCAllocator::* kName, const BfcOptions tsl::BFCAllocator::* kOptions>
struct Changes {
  friend void Change(tsl::BFCAllocator& allocator, const std::string& name) {
    allocator.*kName = name;
    const_cast<BfcOptions&>(allocator.*kOptions).allow_retry_on_failure = false;
  }
};
void Change(tsl::BFCAllocator& allocator, const std::string& name);
template struct Changes<&tsl::BFCAllocator::name_, &tsl::BFCAllocator::opts_>;

void NameAllocatorAsCuda(Allocator* allocator) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  const std::string theirs = "PluggableDevice_", name = allocator->Name();
  auto* named = dynamic_cast<tsl::BFCAllocator*>(allocator);
  if (named && name.rfind(theirs, 0) == 0) Change(*named, "GPU_" + name.substr(theirs.size()));
}

double Elements(const Tensor& tensor) { return static_cast<double>(tensor.NumElements()); }

// An asynchronous kernel can stand for both kinds: AsAsync() says which one it is.
class TwinKernel : public AsyncOpKernel {
 public:
  explicit TwinKernel(OpKernelConstruction* construction)
      : AsyncOpKernel(construction), op_(construction->def().op()) {
    std::shared_ptr<const NodeProperties> properties;
    OP_REQUIRES_OK(construction,
                   NodeProperties::CreateFromNodeDef(construction->def(), OpRegistry::Global(), &properties));
    auto* device = dynamic_cast<DeviceBase*>(construction->device());
    NameAllocatorAsCuda(device->GetAllocator(AllocatorAttributes()));
    OpKernel* twin = nullptr;
    OP_REQUIRES_OK(construction, CreateOpKernel(DeviceType("CPU"), device, device->GetAllocator(AllocatorAttributes()),
                                                construction->function_library(), construction->resource_manager(),
                                                properties, construction->graph_def_version(), &twin));
    twin_.reset(twin);
    const MemoryTypeVector& outputs = output_memory_types();
    bool is_on_host = std::all_of(outputs.begin(), outputs.end(), [](MemoryType type) { return type == HOST_MEMORY; });
    takes_no_time_ = IsAmong(op_, kTakeNoTime) || (is_on_host && !outputs.empty());
    for (const char* name : {"transpose_a", "adj_x"}) TryGetNodeAttr(def(), name, &is_first_transposed_);
    for (const char* name : {"transpose_b", "adj_y"}) TryGetNodeAttr(def(), name, &is_second_transposed_);
  }

  AsyncOpKernel* AsAsync() override { return twin_ && twin_->AsAsync() ? this : nullptr; }
  bool IsExpensive() override { return false; }  // as kernels that only launch

  void Compute(OpKernelContext* context) override {
    double flop = Flop(context);
    if (flop <= GetSettings().skip_flop || !Skip(context)) twin_->Compute(context);
    if (context->status().ok()) Spend(context, flop);
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    twin_->AsAsync()->ComputeAsync(context, [this, context, done] {
      if (context->status().ok()) Spend(context, 0);
      done();
    });
  }

 private:
  // Floating point operations of products and convolutions, the only ops for which they matter; 0 for others.
  double Flop(OpKernelContext* context) {
    if (op_ == "MatMul") {
      const Tensor& first = context->input(0);
      return first.dims() == 2 ? 2.0 * first.dim_size(is_first_transposed_ ? 1 : 0) * Elements(context->input(1)) : 0;
    }
    if (op_ == "Conv2D") {
      const Tensor &images = context->input(0), &filter = context->input(1);
      return 2 * Elements(filter) * Elements(images) / std::max<int64_t>(1, images.dim_size(3));
    }
    if (op_ == "Conv2DBackpropFilter" || op_ == "Conv2DBackpropInput") return 128 * Elements(context->input(2));
    return 0;
  }

  // Return zeros of the right shape in place of a large product that would take the CPU long; false if the shape is not
  // known. Of a large result only the beginning is written: a GPU launches a product within microseconds.
  static constexpr size_t kLargeBytes = 1 << 20;
  bool Skip(OpKernelContext* context) {
    TensorShape shape;
    if (op_ == "MatMul") {
      const Tensor &first = context->input(0), &second = context->input(1);
      shape.AddDim(first.dim_size(is_first_transposed_ ? 1 : 0));
      shape.AddDim(second.dim_size(is_second_transposed_ ? 0 : 1));
    } else if (op_ == "Conv2D") {
      if (!ShapeOfConvolution(context, &shape)) return false;
    } else {  // the gradients are told their shape
      auto sizes = context->input(op_ == "Conv2DBackpropInput" ? 0 : 1).flat<int32>();
      for (int i = 0; i < sizes.size(); ++i) shape.AddDim(sizes(i));
    }
    Tensor* output = nullptr;
    absl::Status status = context->allocate_output(0, shape, &output);
    if (!status.ok()) {
      context->SetStatus(status);
      return true;
    }
    size_t filled = output->TotalBytes() > kLargeBytes ? kLargeBytes / 16 : output->TotalBytes();
    std::fill_n(const_cast<char*>(output->tensor_data().data()), filled, 0);
    return true;
  }

  bool ShapeOfConvolution(OpKernelContext* context, TensorShape* shape) {
    std::vector<int32> strides;
    std::string padding, format;
    TryGetNodeAttr(def(), "strides", &strides);
    TryGetNodeAttr(def(), "padding", &padding);
    TryGetNodeAttr(def(), "data_format", &format);
    if (format == "NCHW" || padding == "EXPLICIT") return false;
    const Tensor &images = context->input(0), &filter = context->input(1);
    auto length = [&](int axis) {
      int64_t covered = images.dim_size(axis) - (padding == "VALID" ? filter.dim_size(axis - 1) - 1 : 0);
      return (covered + strides[axis] - 1) / strides[axis];
    };
    *shape = TensorShape({images.dim_size(0), length(1), length(2), filter.dim_size(3)});
    return true;
  }

  // Let the time pass that the op would take.
  void Spend(OpKernelContext* context, double flop) {
    if (takes_no_time_) return;
    int64_t duration_ns = DurationNs(context, flop);
    if (duration_ns == 0) return;
    TF_Status* status = TF_NewStatus();
    // The C API's context is this one under another name.
    SP_Stream stream = TF_GetStream(reinterpret_cast<TF_OpKernelContext*>(context), status);
    if (TF_GetCode(status) == TF_OK)
      Launch(stream, duration_ns, {Work::kKernel, op_ + "_kernel", name() + ":" + op_, 0});
    TF_DeleteStatus(status);
  }

  int64_t DurationNs(OpKernelContext* context, double flop) {
    const Settings& settings = GetSettings();
    auto fixed = settings.op_ns.find(op_);
    if (fixed != settings.op_ns.end()) return fixed->second;
    int64_t bytes = 0;
    for (int i = 0; i < context->num_outputs(); ++i)
      if (Tensor* output = context->mutable_output(i)) bytes += output->TotalBytes();
    constexpr int kPasses = 3;  // an op reads about twice what it writes
    return settings.kernel_ns + static_cast<int64_t>(flop / settings.gflops + kPasses * bytes / settings.memory_gbps);
  }

  std::string op_;
  std::unique_ptr<OpKernel> twin_;
  bool takes_no_time_ = false, is_first_transposed_ = false, is_second_transposed_ = false;
};

OpKernel* Make(OpKernelConstruction* construction) { return new TwinKernel(construction); }

}  // namespace
}  // namespace pretend_gpu

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  using namespace pretend_gpu;
  const KernelList all = GetAllRegisteredKernels();
  std::set<std::string> on_cpu, seen;
  for (const KernelDef& kernel : all.kernel())
    if (kernel.device_type() == "CPU") on_cpu.insert(kernel.op());
  for (const KernelDef& kernel : all.kernel()) {
    if (kernel.device_type() != "GPU" || IsAmong(kernel.op(), kOwn) || !on_cpu.count(kernel.op())) continue;
    auto taken_over = std::make_unique<KernelDef>(kernel);
    taken_over->set_priority(kernel.priority() + 10);
    if (!seen.insert(taken_over->SerializeAsString()).second) continue;  // TensorFlow has some of them twice
    new kernel_factory::OpKernelRegistrar(taken_over.release(), "TwinKernel", Make);
  }
}
