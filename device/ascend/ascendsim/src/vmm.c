// Virtual memory management, and mapping by the driver's own call.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "abi.h"
#include "sim.h"

// reservation is a range of addresses, and what is mapped there.
struct reservation {
  uint64_t addr, size;
  int device;
  struct alloc *physical;
  struct alloc *view;
  bool host;
  struct reservation *next;
};
static struct reservation *reservations;

int64_t count_vmm(void) {
  int64_t n = 0;
  for (struct reservation *r = reservations; r; r = r->next) n++;
  return n;
}

static struct reservation *reserved(void *p) {
  for (struct reservation *r = reservations; r; r = r->next)
    if (r->addr == (uint64_t)p) return r;
  return NULL;
}

static void no_access(struct reservation *r) {
  if (r->host) mmap((void *)r->addr, r->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  r->host = false;
}

void vmm_reset(int device) {
  for (struct reservation **p = &reservations, *r; (r = *p);) {
    if (r->device != device) {
      p = &r->next;
      continue;
    }
    no_access(r);
    if (r->view) drop_alloc(r->view);
    *p = r->next;
    free(r);
  }
}

API int aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, int option, size_t *granularity) {
  (void)prop;
  (void)option;
  *granularity = GRANULE;
  return enter("aclrtMemGetAllocationGranularity");
}

API int aclrtReserveMemAddress(void **out, size_t size, size_t alignment, void *expect, uint64_t flags) {
  struct context *c;
  int code = enter("aclrtReserveMemAddress");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    uint64_t p = 0;
    if (size == 0 || size % GRANULE || alignment || expect || flags > 1) code = fail(E_PARAM, "EH0001: aclrtReserveMemAddress of %zu bytes: a multiple of 2 MiB, and no wishes", size);
    else if (!(p = take_addresses(c->device, size, GRANULE))) code = fail(E_OOM, "EL0004: no addresses left");
    if (!code) {
      struct reservation *r = calloc(1, sizeof *r);
      *r = (struct reservation){.addr = p, .size = size, .device = c->device, .next = reservations};
      reservations = r;
      *out = (void *)p;
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtReleaseMemAddress(void *p) {
  int code = enter("aclrtReleaseMemAddress");
  if (code) return code;
  pthread_mutex_lock(&big);
  struct reservation *r = reserved(p);
  if (!r || r->view) code = fail(E_PARAM, "EE1001: aclrtReleaseMemAddress(%p): not reserved, or still mapped", p);
  else {
    for (struct reservation **q = &reservations; *q; q = &(*q)->next) {
      if (*q == r) {
        *q = r->next;
        break;
      }
    }
    free(r);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMallocPhysical(void **handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
  struct context *c;
  int code = enter("aclrtMallocPhysical");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    if (size == 0 || size % GRANULE || flags || !prop || prop->handleType || prop->allocationType || prop->memAttr < 1 || prop->memAttr > 11 || prop->location.type != 1 || (int)prop->location.id != c->device)
      code = fail(E_PARAM, "EH0001: aclrtMallocPhysical of %zu bytes", size);
    else if (used_on(c->device) + (int64_t)size > config.memory) code = fail(E_OOM, "EL0004: %zu bytes do not fit", size);
    uint64_t offset = code ? 0 : take_offset(c->device, size);
    if (!code && !offset) code = fail(E_OOM, "EL0004: no memory left");
    if (!code) {
      struct alloc *a = calloc(1, sizeof *a);
      *a = (struct alloc){.kind = K_PHYSICAL, .size = size, .device = c->device, .offset = offset};
      a->addr = 0;
      add_alloc(a);
      *handle = a;
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtFreePhysical(void *handle) {
  int code = enter("aclrtFreePhysical");
  if (code) return code;
  pthread_mutex_lock(&big);
  struct alloc *a = handle;
  for (struct reservation *r = reservations; r; r = r->next)
    if (r->physical == a) code = fail(E_HANDLE, "EE1001: aclrtFreePhysical: still mapped");
  if (!code) {
    give_back(a->device, a->offset, a->size);
    drop_alloc(a);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMapMem(void *p, size_t size, size_t offset, void *handle, uint64_t flags) {
  int code = enter("aclrtMapMem");
  if (code) return code;
  pthread_mutex_lock(&big);
  struct reservation *r = reserved(p);
  struct alloc *a = handle;
  if (!r || !a || r->view || offset || flags || size != r->size || size != a->size) code = fail(E_PARAM, "EE1001: aclrtMapMem(%p, %zu)", p, size);
  else {
    r->physical = a;
    r->view = calloc(1, sizeof *r->view);
    *r->view = (struct alloc){.kind = K_DEVICE, .addr = r->addr, .size = size, .asked = size, .device = r->device, .offset = a->offset, .vmm = true};
    add_alloc(r->view);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtUnmapMem(void *p) {
  int code = enter("aclrtUnmapMem");
  if (code) return code;
  pthread_mutex_lock(&big);
  struct reservation *r = reserved(p);
  if (!r || !r->view) code = fail(E_PARAM, "EE1001: aclrtUnmapMem(%p): not mapped", p);
  else {
    no_access(r);
    drop_alloc(r->view);
    r->view = r->physical = NULL;
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMemSetAccess(void *p, size_t size, aclrtMemAccessDesc *desc, size_t count) {
  int code = enter("aclrtMemSetAccess");
  if (code) return code;
  pthread_mutex_lock(&big);
  struct reservation *r = reserved(p);
  if (!r || !r->view || size != r->size || count != 1 || desc->flags != 3 || desc->location.type != 0) code = fail(E_PARAM, "EE1001: aclrtMemSetAccess(%p, %zu)", p, size);
  else if (!config.vmm) code = fail(E_UNSUPPORTED, "EE1001: the host cannot map device memory here");
  else if (mmap((void *)r->addr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, backing[r->device], (off_t)r->physical->offset) == MAP_FAILED)
    code = fail(E_RESOURCE, "no mapping");
  else r->host = true;
  pthread_mutex_unlock(&big);
  return code;
}

// The driver library forwards to these, since both look at the same memory.

API int ascendsim_register(void *src, uint64_t size, uint32_t flag, uint32_t device, void **dst) {
  pthread_mutex_lock(&big);
  int code = D_OK;
  struct alloc *a = find((uint64_t)src, 1);
  uint64_t rounded = (size + PAGE - 1) / PAGE * PAGE;
  if (device >= (uint64_t)config.devices) code = D_DEVICE;
  else if (flag != 2) code = D_UNSUPPORTED;
  else if ((uint64_t)src % PAGE || !size) code = D_PARA;
  else if (!a || a->kind != K_DEVICE || a->vmm || (uint32_t)a->device != device || (uint64_t)src + size > a->addr + a->size) code = D_VALUE;
  else if (!config.mapping) code = D_UNSUPPORTED;
  else if (config.mapping_limit && size > (uint64_t)config.mapping_limit) code = D_UNSUPPORTED;
  else if (a->mapped) code = D_REPEATED;
  if (code == D_OK) {
    uint64_t offset = a->offset + ((uint64_t)src - a->addr);
    void *p = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, backing[device], (off_t)offset);
    if (p == MAP_FAILED) code = D_OOM;
    else {
      a->mapped = (uint64_t)p;
      a->mapped_size = rounded;
      a->mapped_from = (uint64_t)src;
      *dst = p;
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int ascendsim_unregister(void *src, uint32_t device) {
  (void)device;
  pthread_mutex_lock(&big);
  struct alloc *a = find((uint64_t)src, 1);
  int code = a && a->mapped && a->mapped_from == (uint64_t)src ? D_OK : D_ABSENT;
  if (code == D_OK) {
    munmap((void *)a->mapped, a->mapped_size);
    a->mapped = 0;
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int ascendsim_capabilities(uint32_t *cap) {
  *cap = config.mapping ? 1u << 2 : 0;
  return D_OK;
}

API int ascendsim_enter(const char *call) { return enter(call); }
