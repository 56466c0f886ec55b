// Life cycle, configuration, errors and what is injected.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER;
struct config config;
static bool initialised;
static __thread char message[512];
static __thread struct context *on_thread;
static struct context *contexts;
static struct context defaults[MAX_DEVICES];
static bool is_lost[MAX_DEVICES];
static int64_t uses[MAX_DEVICES], lose_at[MAX_DEVICES];

int64_t env_int(const char *name, int64_t otherwise) {
  const char *v = getenv(name);
  return v && *v ? strtoll(v, NULL, 0) : otherwise;
}

int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

int fail(int code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return code;
}

// Injected failures: call, code, how many calls pass before, how many fail.
struct injection {
  char call[64];
  int code;
  int64_t after, count;
};
static struct injection injections[32];
static int ninjections;
static int64_t injected;  // failures so far

// inject reads "call:code[:after[:count]]", several with commas between. The
// count is 1 unless said otherwise; 0 is without end.
static void inject(const char *spec) {
  ninjections = 0;
  while (spec && *spec && ninjections < 32) {
    struct injection *i = &injections[ninjections];
    *i = (struct injection){.count = 1};
    long long after = 0, count = 1;
    if (sscanf(spec, "%63[^:]:%d:%lld:%lld", i->call, &i->code, &after, &count) >= 2) {
      i->after = after;
      i->count = count ? count : INT64_MAX;
      ninjections++;
    }
    spec = strchr(spec, ',');
    if (spec) spec++;
  }
}

static void set_mapping(const char *v) {
  config.mapping = v && strcmp(v, "absent") ? 1 : 0;
  config.mapping_limit = 0;
  if (v && !strncmp(v, "limited:", 8)) config.mapping_limit = strtoll(v + 8, NULL, 0);
}

static void configure(const char *key, const char *value) {
  if (!strcmp(key, "DEVICES")) config.devices = strtoll(value, NULL, 0);
  if (!strcmp(key, "MEMORY")) config.memory = strtoll(value, NULL, 0);
  if (!strcmp(key, "BANDWIDTH")) config.bandwidth = strtoll(value, NULL, 0);
  if (!strcmp(key, "LATENCY")) config.latency = strtoll(value, NULL, 0);
  if (!strcmp(key, "CALL_DELAY")) config.wait = strtoll(value, NULL, 0);
  if (!strcmp(key, "STREAMS")) config.streams = strtoll(value, NULL, 0);
  if (!strcmp(key, "PAGEABLE_ASYNC")) config.pageable_async = *value == '1';
  if (!strcmp(key, "MAPPING")) set_mapping(value);
  if (!strcmp(key, "VMM")) config.vmm = strcmp(value, "absent") != 0;
  if (!strcmp(key, "FAIL")) inject(value);
  if (!strcmp(key, "LOSE")) {  // device[:after this many uses]
    int d = 0;
    long long after = 0;
    if (sscanf(value, "%d:%lld", &d, &after) >= 1 && d >= 0 && d < MAX_DEVICES) lose_at[d] = uses[d] + after + 1;
  }
}

static const char *const keys[] = {"DEVICES", "MEMORY", "BANDWIDTH", "LATENCY", "CALL_DELAY", "STREAMS", "PAGEABLE_ASYNC", "MAPPING", "VMM", "FAIL", "LOSE"};

static void read_environment(void) {
  config = (struct config){.devices = 2, .memory = (int64_t)4 << 30, .mapping = 1, .vmm = 1, .streams = MAX_STREAMS};
  ninjections = 0;
  memset(lose_at, 0, sizeof lose_at);
  memset(is_lost, 0, sizeof is_lost);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    char name[64];
    snprintf(name, sizeof name, "ASCENDSIM_%s", keys[i]);
    const char *v = getenv(name);
    if (v && *v) configure(keys[i], v);
  }
  if (config.devices > MAX_DEVICES) config.devices = MAX_DEVICES;
}

// ascendsim_set changes what the environment chose at the start.
API void ascendsim_set(const char *key, const char *value) {
  pthread_mutex_lock(&big);
  configure(key, value);
  pthread_mutex_unlock(&big);
}

int enter(const char *call) {
  pthread_mutex_lock(&big);
  int code = OK;
  int64_t wait = config.wait;
  bool on = initialised;
  for (int i = 0; i < ninjections && !code; i++) {
    struct injection *j = &injections[i];
    if (strcmp(j->call, call) || j->count <= 0) continue;
    if (j->after-- > 0) continue;
    j->count--;
    injected++;
    code = j->code;
  }
  pthread_mutex_unlock(&big);
  if (wait) {
    struct timespec t = {wait / 1000000, wait % 1000000 * 1000};
    nanosleep(&t, NULL);
  }
  if (code) return fail(code, "EE9999: %s was told to fail by ASCENDSIM_FAIL", call);
  if (!on) return fail(E_UNINIT, "EH0002: %s before aclInit", call);
  return OK;
}

int lost(int d) {
  uses[d]++;
  if (lose_at[d] && uses[d] >= lose_at[d]) is_lost[d] = true;
  return is_lost[d] ? fail(E_LOST, "EL0003: device %d does not answer", d) : OK;
}

API int aclInit(const char *path) {
  (void)path;
  pthread_mutex_lock(&big);
  int code = OK;
  if (initialised) code = fail(E_REPEAT_INIT, "EH0003: aclInit was called before");
  if (!code) {
    read_environment();
    code = memory_init();
    initialised = code == OK;
  }
  pthread_mutex_unlock(&big);
  int injected = code ? OK : enter("aclInit");
  if (injected) initialised = false;
  return code ? code : injected;
}

API int aclFinalize(void) {
  int code = enter("aclFinalize");
  if (code) return code;
  for (int d = 0; d < MAX_DEVICES; d++) streams_reset(d);
  pthread_mutex_lock(&big);
  initialised = false;
  pthread_mutex_unlock(&big);
  return OK;
}

static int check_device(int d) {
  if (d < 0 || d >= config.devices) return fail(E_DEVICE_ID, "EE1001: device %d, there are 0 to %d", d, (int)config.devices - 1);
  return lost(d);
}

API int aclrtGetDeviceCount(uint32_t *count) {
  int code = enter("aclrtGetDeviceCount");
  if (!code) *count = (uint32_t)config.devices;
  return code;
}

API int aclrtSetDevice(int32_t d) {
  int code = enter("aclrtSetDevice");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = check_device(d))) {
    defaults[d].device = d;
    defaults[d].alive = true;
    on_thread = &defaults[d];
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtResetDevice(int32_t d) {
  int code = enter("aclrtResetDevice");
  if (code) return code;
  if (d < 0 || d >= config.devices) return fail(E_DEVICE_ID, "EE1001: device %d", d);
  streams_reset(d);
  pthread_mutex_lock(&big);
  memory_reset(d);
  defaults[d].alive = false;
  on_thread = NULL;
  pthread_mutex_unlock(&big);
  return OK;
}

API int aclrtCreateContext(void **out, int32_t d) {
  int code = enter("aclrtCreateContext");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = check_device(d))) {
    struct context *c = calloc(1, sizeof *c);
    c->device = d;
    c->alive = true;
    c->next = contexts;
    contexts = c;
    on_thread = c;
    *out = c;
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtDestroyContext(void *context) {
  int code = enter("aclrtDestroyContext");
  if (code) return code;
  pthread_mutex_lock(&big);
  code = fail(E_NO_CONTEXT, "EE1001: no such context");
  for (struct context *c = contexts; c; c = c->next) {
    if (c == context && c->alive) {
      c->alive = false;
      code = OK;
    }
  }
  if (!code && on_thread == context) on_thread = NULL;
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtSetCurrentContext(void *context) {
  int code = enter("aclrtSetCurrentContext");
  if (code) return code;
  if (!context) return fail(E_PARAM, "EH0001: context is null");
  on_thread = context;
  return OK;
}

API int aclrtGetCurrentContext(void **context) {
  int code = enter("aclrtGetCurrentContext");
  if (!code && !on_thread) code = fail(E_NO_CONTEXT, "EE1001: no context on this thread");
  if (!code) *context = on_thread;
  return code;
}

int current(struct context **out) {
  if (!on_thread || !on_thread->alive) return fail(E_NO_CONTEXT, "EE1001: this thread has no context: call aclrtSetDevice on it");
  *out = on_thread;
  return lost(on_thread->device);
}

API const char *aclrtGetSocName(void) { return "AscendSim"; }

API int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
  *major = 1;
  *minor = 17;
  *patch = 0;
  return OK;
}

API int aclrtGetLogicDevIdByUserDevId(const int32_t user, int32_t *const logic) {
  int code = enter("aclrtGetLogicDevIdByUserDevId");
  if (!code && (user < 0 || user >= config.devices)) code = fail(E_DEVICE_ID, "EE1001: device %d", user);
  if (!code) *logic = user;
  return code;
}

API const char *aclGetRecentErrMsg(void) {
  static __thread char copy[sizeof message];
  memcpy(copy, message, sizeof copy);
  message[0] = 0;
  return copy[0] ? copy : NULL;
}

// ascendsim_count tells how many of something are alive.
API int64_t ascendsim_count(const char *what) {
  pthread_mutex_lock(&big);
  int64_t n = -1;
  if (!strcmp(what, "injected")) n = injected;
  if (!strcmp(what, "blocks")) n = count_allocs(K_DEVICE);
  if (!strcmp(what, "buffers")) n = count_allocs(K_HOST);
  if (!strcmp(what, "physical")) n = count_allocs(K_PHYSICAL);
  if (!strcmp(what, "mappings")) n = count_mappings();
  if (!strcmp(what, "reservations")) n = count_vmm();
  if (!strcmp(what, "streams")) n = stream_count();
  if (!strcmp(what, "events")) n = event_count();
  if (!strcmp(what, "contexts")) {
    n = 0;
    for (struct context *c = contexts; c; c = c->next) n += c->alive;
  }
  pthread_mutex_unlock(&big);
  return n;
}
