// Copies: their checks, their engines' pace, and the calls that copy at once.
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "sim.h"

// free_at is when the engine of a device and direction has done what it was given.
static int64_t free_at[MAX_DEVICES][5];

// side checks one end of a copy against what its kind wants there.
static int side(const char *name, uint64_t p, uint64_t n, bool want_device, bool async, int device) {
  struct alloc *a = find(p, n);
  if (want_device) {
    if (!a || a->kind != K_DEVICE) return fail(E_PARAM, "EE1001: %s %#llx, %llu bytes: no device memory, freed, or too short", name, (unsigned long long)p, (unsigned long long)n);
    if (a->device != device) return fail(E_PARAM, "EE1001: %s %#llx is on device %d, the context on %d", name, (unsigned long long)p, a->device, device);
    if (p + n > a->addr + a->asked) return fail(E_PARAM, "EE1001: %s %#llx, %llu bytes: beyond the allocation", name, (unsigned long long)p, (unsigned long long)n);
    return OK;
  }
  if (is_device_address(p)) return fail(E_PARAM, "EE1001: %s %#llx is device memory, and the kind says host", name, (unsigned long long)p);
  if (a) return OK;
  if (find(p, 1)) return fail(E_PARAM, "EE1001: %s %#llx, %llu bytes: beyond pinned memory", name, (unsigned long long)p, (unsigned long long)n);
  if (async && !config.pageable_async) return fail(E_PARAM, "EE1001: %s %#llx is not pinned: an asynchronous copy wants aclrtMallocHost", name, (unsigned long long)p);
  return OK;
}

int check_copy(uint64_t dst, uint64_t max, uint64_t src, uint64_t n, int kind, bool async) {
  struct context *c;
  int code = current(&c);
  if (code) return code;
  if (n == 0 || n > max || !dst || !src) return fail(E_PARAM, "EH0001: copy of %llu bytes into %llu", (unsigned long long)n, (unsigned long long)max);
  if (kind == DEFAULT_KIND) kind = is_device_address(dst) ? (is_device_address(src) ? D2D : H2D) : is_device_address(src) ? D2H : H2H;
  if (kind < H2H || kind > D2D) return fail(E_PARAM, "EH0001: copy kind %d", kind);
  if (kind == H2H && async) return fail(E_UNSUPPORTED, "EE1001: an asynchronous copy from host to host");
  if (!(code = side("destination", dst, n, kind == H2D || kind == D2D, async, c->device)))
    code = side("source", src, n, kind == D2H || kind == D2D, async, c->device);
  return code;
}

static void sleep_until(int64_t t) {
  struct timespec at = {t / 1000000, t % 1000000 * 1000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL)) {
  }
}

// busy counts an engine on the memory that a copy uses.
static int hold(uint64_t p, uint64_t n, int delta) {
  struct alloc *a = find(p, n);
  if (a) a->busy += delta;
  return a || (!is_device_address(p) && !find(p, 1));
}

int run_copy(int device, uint64_t dst, uint64_t src, uint64_t n, int kind, int64_t ready, int64_t *ended) {
  if (kind == DEFAULT_KIND) kind = is_device_address(dst) ? (is_device_address(src) ? D2D : H2D) : D2H;
  int code = enter("copy");
  if (code) return code;
  pthread_mutex_lock(&big);
  code = lost(device);
  void *to = NULL, *from = NULL;
  if (!code) {
    bool ok = hold(dst, n, 1);
    if (ok && !hold(src, n, 1)) {
      hold(dst, n, -1);
      ok = false;
    }
    if (!ok) code = fail(E_MEM, "EZ9999: memory was freed under a copy of %llu bytes", (unsigned long long)n);
  }
  if (code) {
    pthread_mutex_unlock(&big);
    return code;
  }
  to = find(dst, n) ? shadow(dst) : (void *)dst;
  from = find(src, n) ? shadow(src) : (void *)src;
  // As in hardware, a copy that was queued begins when the engine is free, and not
  // when a thread has noticed.
  int64_t now = now_us(), end = ready, latency = config.latency;
  if (config.bandwidth > 0) {
    int64_t *f = &free_at[device][kind];
    end = (*f > ready ? *f : ready) + (int64_t)((double)n * 1e6 / (double)config.bandwidth);
    *f = end;
  }
  pthread_mutex_unlock(&big);
  end += latency;
  *ended = end;
  // The bytes arrive at the end, so that whoever looks early is caught.
  int64_t early = (int64_t)(n >> 13);  // about what the copy itself takes
  if (end - early > now) sleep_until(end - early);
  memcpy(to, from, n);
  if (end > now) sleep_until(end);
  pthread_mutex_lock(&big);
  hold(dst, n, -1);
  hold(src, n, -1);
  code = lost(device);
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMemcpy(void *dst, size_t max, const void *src, size_t n, int kind) {
  int code = enter("aclrtMemcpy");
  if (code) return code;
  struct context *c = NULL;
  pthread_mutex_lock(&big);
  if (!(code = check_copy((uint64_t)dst, max, (uint64_t)src, n, kind, false))) code = current(&c);
  pthread_mutex_unlock(&big);
  if (code) return code;
  if (kind == H2H) {
    memcpy(dst, src, n);
    return OK;
  }
  int64_t ended;
  return run_copy(c->device, (uint64_t)dst, (uint64_t)src, n, kind, now_us(), &ended);
}
