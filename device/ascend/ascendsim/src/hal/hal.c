// The driver library: it looks at the memory of the runtime library that lies
// beside it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { NO_LIBRARY = 17, UNSUPPORTED = 0xfffe };

static void *core(const char *name) {
  static void *library;
  if (!library) {
    Dl_info here;
    char path[4096];
    if (!dladdr((void *)core, &here)) return NULL;
    snprintf(path, sizeof path, "%s", here.dli_fname);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 32, "libascendcl.so");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library ? dlsym(library, name) : NULL;
}

static int injected(const char *call) {
  int (*enter)(const char *) = core("ascendsim_enter");
  return enter ? enter(call) : NO_LIBRARY;
}

API int halHostRegister(void *src, uint64_t size, uint32_t flag, uint32_t device, void **dst) {
  int code = injected("halHostRegister");
  int (*f)(void *, uint64_t, uint32_t, uint32_t, void **) = core("ascendsim_register");
  return code ? code : f(src, size, flag, device, dst);
}

API int halHostUnregister(void *src, uint32_t device) {
  int code = injected("halHostUnregister");
  int (*f)(void *, uint32_t) = core("ascendsim_unregister");
  return code ? code : f(src, device);
}

API int halHostUnregisterEx(void *src, uint32_t device, uint32_t flag) { return flag == 2 ? halHostUnregister(src, device) : UNSUPPORTED; }

API int halHostRegisterCapabilities(uint32_t device, uint32_t module, uint32_t *cap) {
  (void)device;
  (void)module;
  int (*f)(uint32_t *) = core("ascendsim_capabilities");
  return f ? f(cap) : NO_LIBRARY;
}

API int drvGetDevNum(uint32_t *count) {
  int (*f)(uint32_t *) = core("aclrtGetDeviceCount");
  return f ? f(count) : NO_LIBRARY;
}
