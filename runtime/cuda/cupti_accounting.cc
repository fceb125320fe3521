// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cupti_accounting.h"

#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_library.h"

namespace onestep {
namespace {

// The functions of CUPTI that are used here, by name.
#define ONESTEP_CUPTI_FUNCTIONS(F) \
  F(cuptiEnableDomain)             \
  F(cuptiGetResultString)          \
  F(cuptiSubscribe)                \
  F(cuptiUnsubscribe)

struct CuptiFunctions {
#define ONESTEP_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  ONESTEP_CUPTI_FUNCTIONS(ONESTEP_CUPTI_MEMBER)
#undef ONESTEP_CUPTI_MEMBER
};

absl::StatusOr<CuptiFunctions> Load(const std::string& name) {
  const absl::StatusOr<void*> library = OpenCudaLibrary(name);
  if (!library.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cupti: ", library.status().message()));
  }
  CuptiFunctions cupti;
#define ONESTEP_CUPTI_LOAD(f)                                         \
  cupti.f = reinterpret_cast<decltype(cupti.f)>(dlsym(*library, #f)); \
  if (cupti.f == nullptr) {                                           \
    return absl::UnavailableError(                                    \
        absl::StrCat("cupti: ", name, " lacks ", #f));                \
  }
  ONESTEP_CUPTI_FUNCTIONS(ONESTEP_CUPTI_LOAD)
#undef ONESTEP_CUPTI_LOAD
  return cupti;
}

class LoadedCupti final : public CudaCallCounter {
 public:
  explicit LoadedCupti(const CuptiFunctions& cupti) : cupti_(cupti) {}
  ~LoadedCupti() override {
    if (subscriber_ != nullptr) cupti_.cuptiUnsubscribe(subscriber_);
  }

  absl::Status Start() {
    CUpti_SubscriberHandle subscriber = nullptr;
    RETURN_IF_ERROR(Check("cuptiSubscribe",
                          cupti_.cuptiSubscribe(&subscriber, OnCall, this)));
    subscriber_ = subscriber;
    for (const CUpti_CallbackDomain domain :
         {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API}) {
      RETURN_IF_ERROR(Check("cuptiEnableDomain",
                            cupti_.cuptiEnableDomain(1, subscriber_, domain)));
    }
    return absl::OkStatus();
  }

  std::vector<CudaCallStats> Stats() const override {
    const std::lock_guard lock(mutex_);
    std::vector<CudaCallStats> stats;
    for (const auto& [key, total] : totals_) stats.push_back(total);
    std::ranges::sort(stats, std::greater<>(), &CudaCallStats::total_us);
    return stats;
  }

 private:
  using Key = std::pair<CUpti_CallbackDomain, CUpti_CallbackId>;

  absl::Status Check(const char* call, CUptiResult result) {
    if (result == CUPTI_SUCCESS) return absl::OkStatus();
    const char* why = nullptr;
    cupti_.cuptiGetResultString(result, &why);
    return absl::UnavailableError(absl::StrCat(
        "cupti: ", call, ": ", why == nullptr ? "?" : why, " (", result, ")"));
  }

  // CUPTI calls this on the thread of each call, when it begins and when it
  // returns. correlationData is 8 bytes of memory per call: here the time at
  // which it began, or 0 for a call inside another.
  static void CUPTIAPI OnCall(void* self, CUpti_CallbackDomain domain,
                              CUpti_CallbackId id, const void* data) {
    thread_local int depth = 0;
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite == CUPTI_API_ENTER) {
      *call.correlationData = depth++ == 0 ? NowNs() : 0;
      return;
    }
    // A call that began before counting did has no entry here.
    if (depth > 0 && --depth == 0 && *call.correlationData != 0) {
      static_cast<LoadedCupti*>(self)->Add(
          {domain, id}, call.functionName,
          NowNs() - static_cast<int64_t>(*call.correlationData));
    }
  }

  void Add(const Key& key, const char* name, int64_t ns) {
    const std::lock_guard lock(mutex_);
    CudaCallStats& total = totals_[key];
    if (total.calls++ == 0) total.call = name;
    total.total_us += 1e-3 * ns;
  }

  const CuptiFunctions cupti_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  mutable std::mutex mutex_;
  std::map<Key, CudaCallStats> totals_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaCallCounter>> CountCallsByCupti(
    const std::string& library) {
  ASSIGN_OR_RETURN(
      const CuptiFunctions cupti,
      Load(library.empty()
               ? absl::StrCat("libcupti.so.", CUPTI_API_VERSION / 10000)
               : library));
  auto accounting = std::make_unique<LoadedCupti>(cupti);
  RETURN_IF_ERROR(accounting->Start());
  return accounting;
}

}  // namespace onestep
