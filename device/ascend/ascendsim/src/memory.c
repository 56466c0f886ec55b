// Memory of devices and pinned memory of the host. Device addresses lie in a range
// without access; what they hold lies in a file, which the engines see elsewhere.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "sim.h"

int backing[MAX_DEVICES];
static char *range;  // of device addresses, no access
static char *bytes[MAX_DEVICES];
static uint64_t next_address[MAX_DEVICES];
static struct alloc *allocs;

int memory_init(void) {
  if (!range) {
    range = mmap(NULL, DEVICE_SPAN * MAX_DEVICES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
      range = NULL;
      return fail(E_RESOURCE, "no address space for device memory");
    }
  }
  for (int d = 0; d < config.devices; d++) {
    if (bytes[d]) continue;
    backing[d] = memfd_create("ascendsim", MFD_CLOEXEC);
    if (backing[d] < 0 || ftruncate(backing[d], (off_t)DEVICE_SPAN)) return fail(E_RESOURCE, "no memory file");
    bytes[d] = mmap(NULL, DEVICE_SPAN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, backing[d], 0);
    if (bytes[d] == MAP_FAILED) {
      bytes[d] = NULL;
      return fail(E_RESOURCE, "no mapping of device memory");
    }
    next_address[d] = GRANULE;
  }
  return OK;
}

bool is_device_address(uint64_t p) { return range && p - (uint64_t)range < DEVICE_SPAN * MAX_DEVICES; }

int device_of(uint64_t p) { return (int)((p - (uint64_t)range) / DEVICE_SPAN); }

// take_addresses never gives an address twice, so that a stale one is noticed.
uint64_t take_addresses(int d, uint64_t size, uint64_t align) {
  uint64_t at = (next_address[d] + align - 1) / align * align;
  if (size > DEVICE_SPAN || at + size > DEVICE_SPAN) return 0;
  next_address[d] = at + size + PAGE;
  return (uint64_t)range + (uint64_t)d * DEVICE_SPAN + at;
}

uint64_t take_offset(int d, uint64_t size) {
  uint64_t p = take_addresses(d, size, GRANULE);
  return p ? p - (uint64_t)range - (uint64_t)d * DEVICE_SPAN : 0;
}

void give_back(int d, uint64_t offset, uint64_t size) {
  uint64_t first = (offset + PAGE - 1) / PAGE * PAGE, end = (offset + size) / PAGE * PAGE;
  if (end > first) fallocate(backing[d], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first, (off_t)(end - first));
}

void add_alloc(struct alloc *a) {
  a->next = allocs;
  allocs = a;
}

void drop_alloc(struct alloc *a) {
  for (struct alloc **p = &allocs; *p; p = &(*p)->next) {
    if (*p == a) {
      *p = a->next;
      free(a);
      return;
    }
  }
}

static struct alloc *exact(uint64_t p, enum kind k) {
  for (struct alloc *a = allocs; a; a = a->next)
    if (a->kind == k && a->addr == p) return a;
  return NULL;
}

struct alloc *find(uint64_t p, uint64_t n) {
  for (struct alloc *a = allocs; a; a = a->next)
    if (a->kind != K_PHYSICAL && p - a->addr <= a->size && n <= a->size - (p - a->addr)) return a;
  return NULL;
}

void *shadow(uint64_t p) {
  struct alloc *a = find(p, 0);
  if (!a) return NULL;
  return a->kind == K_DEVICE ? bytes[a->device] + a->offset + (p - a->addr) : (void *)p;
}

int64_t count_allocs(enum kind k) {
  int64_t n = 0;
  for (struct alloc *a = allocs; a; a = a->next) n += a->kind == k;
  return n;
}

int64_t count_mappings(void) {
  int64_t n = 0;
  for (struct alloc *a = allocs; a; a = a->next) n += a->mapped != 0;
  return n;
}

int64_t used_on(int d) {
  int64_t n = 0;
  for (struct alloc *a = allocs; a; a = a->next)
    if (a->kind != K_HOST && !a->vmm && a->device == d) n += (int64_t)a->size;
  return n;
}

static void release(struct alloc *a) {
  if (a->mapped) munmap((void *)a->mapped, a->mapped_size);
  if (a->kind == K_HOST)
    munmap((void *)a->addr, (a->size + PAGE - 1) / PAGE * PAGE);
  else
    give_back(a->device, a->offset, a->size);
  drop_alloc(a);
}

void memory_reset(int d) {
  vmm_reset(d);
  for (struct alloc *a = allocs, *next; a; a = next) {
    next = a->next;
    if (a->device == d) release(a);
  }
}

API int aclrtMalloc(void **out, size_t size, int policy) {
  struct context *c;
  int code = enter("aclrtMalloc");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    uint64_t rounded = (size + 31) / 32 * 32 + 32;
    if (!out || size == 0) code = fail(E_PARAM, "EH0001: aclrtMalloc of %zu bytes", size);
    else if ((policy & 0xff) > 7 || (policy & ~0x11ff)) code = fail(E_PARAM, "EH0001: policy %d", policy);
    else if (size > (uint64_t)config.memory || used_on(c->device) + (int64_t)rounded > config.memory)
      code = fail(E_OOM, "EL0004: %zu bytes do not fit, %lld of %lld bytes are in use", size, (long long)used_on(c->device), (long long)config.memory);
    // Small memory begins anywhere at a multiple of 64, as it does in a pool.
    uint64_t skip = size < PAGE ? 64 : 0;
    uint64_t p = code ? 0 : take_addresses(c->device, rounded + skip, PAGE);
    if (!code && !p) code = fail(E_OOM, "EL0004: no addresses left");
    if (!code) {
      p += skip;
      struct alloc *a = calloc(1, sizeof *a);
      *a = (struct alloc){.kind = K_DEVICE, .addr = p, .size = rounded, .asked = size, .device = c->device};
      a->offset = p - (uint64_t)range - (uint64_t)c->device * DEVICE_SPAN;
      add_alloc(a);
      memset(bytes[c->device] + a->offset, 0xa5, rounded < 1 << 20 ? rounded : 1 << 20);  // not zeros
      *out = (void *)p;
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtFree(void *p) {
  struct context *c;
  int code = enter("aclrtFree");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    struct alloc *a = exact((uint64_t)p, K_DEVICE);
    if (!a || a->vmm) code = fail(E_PARAM, "EE1001: aclrtFree(%p): not allocated, or freed before", p);
    else if (a->mapped) code = fail(E_PARAM, "EE1001: aclrtFree(%p): still registered by halHostRegister", p);
    else release(a);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMallocHost(void **out, size_t size) {
  struct context *c;
  int code = enter("aclrtMallocHost");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    void *p = MAP_FAILED;
    if (size) p = mmap(NULL, (size + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) code = fail(E_PARAM, "EH0001: aclrtMallocHost of %zu bytes", size);
    else {
      struct alloc *a = calloc(1, sizeof *a);
      *a = (struct alloc){.kind = K_HOST, .addr = (uint64_t)p, .size = size, .asked = size, .device = c->device};
      add_alloc(a);
      *out = p;
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtFreeHost(void *p) {
  struct context *c;
  int code = enter("aclrtFreeHost");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    struct alloc *a = exact((uint64_t)p, K_HOST);
    while (a && a->busy) {  // an engine reads or writes it
      pthread_mutex_unlock(&big);
      struct timespec t = {0, 50000};
      nanosleep(&t, NULL);
      pthread_mutex_lock(&big);
      a = exact((uint64_t)p, K_HOST);
    }
    if (!a) code = fail(E_PARAM, "EE1001: aclrtFreeHost(%p): not allocated, or freed before", p);
    else release(a);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtPointerGetAttributes(const void *p, aclrtPtrAttributes *out) {
  struct context *c;
  int code = enter("aclrtPointerGetAttributes");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    struct alloc *a = find((uint64_t)p, 1);
    memset(out, 0, sizeof *out);
    out->location.type = !a ? 2 : a->kind == K_HOST ? 0 : 1;
    out->location.id = a && a->kind == K_DEVICE ? (uint32_t)a->device : 0;
    out->pageSize = a ? (uint32_t)(a->size > 1 << 20 && a->kind == K_DEVICE ? GRANULE : PAGE) : 0;
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMemGetAddressRange(void *p, void **base, size_t *size) {
  struct context *c;
  int code = enter("aclrtMemGetAddressRange");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    struct alloc *a = find((uint64_t)p, 1);
    if (!a) code = fail(E_PARAM, "EE1001: %p lies in no allocation", p);
    else {
      *base = (void *)a->addr;
      *size = a->asked;
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtGetMemInfo(int attr, size_t *free_bytes, size_t *total) {
  struct context *c;
  (void)attr;
  int code = enter("aclrtGetMemInfo");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    *total = (size_t)config.memory;
    *free_bytes = (size_t)(config.memory - used_on(c->device));
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMemset(void *p, size_t max, int32_t value, size_t n) {
  struct context *c;
  int code = enter("aclrtMemset");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    struct alloc *a = find((uint64_t)p, n);
    if (n > max || !a || a->kind != K_DEVICE) code = fail(E_PARAM, "EE1001: aclrtMemset(%p, %zu)", p, n);
    else memset(shadow((uint64_t)p), value, n);
  }
  pthread_mutex_unlock(&big);
  return code;
}
