// SPDX-License-Identifier: Apache-2.0
// A libcupti for cupti_accounting_test.cc, which says by FakeCall what the
// program is to have called.
#include <cupti.h>

namespace {

CUpti_CallbackFunc callback = nullptr;  // null: no subscriber
void* callback_data = nullptr;
uint32_t enabled = 0;  // a bit per domain

}  // namespace

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber,
                           CUpti_CallbackFunc function, void* data) {
  if (callback != nullptr) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  callback = function;
  callback_data = data;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&callback);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  callback = nullptr;
  enabled = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle,
                              CUpti_CallbackDomain domain) {
  enabled = (enabled & ~(1u << domain)) | enable << domain;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
              ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
              : "?";
  return CUPTI_SUCCESS;
}

// One call, from its beginning to its return, with `inside` in between.
// Only its return, when `ends_only`.
void FakeCall(CUpti_CallbackDomain domain, CUpti_CallbackId id,
              const char* name, void (*inside)(), bool ends_only) {
  uint64_t correlation = 0;
  CUpti_CallbackData data = {};
  data.functionName = name;
  data.correlationData = &correlation;
  const auto tell = [&](CUpti_ApiCallbackSite site) {
    if (callback == nullptr || !(enabled >> domain & 1)) return;
    data.callbackSite = site;
    callback(callback_data, domain, id, &data);
  };
  if (!ends_only) tell(CUPTI_API_ENTER);
  if (inside != nullptr) inside();
  tell(CUPTI_API_EXIT);
}
}
