// Batched copies.
#include "abi.h"
#include "sim.h"

int queue_copy(void *stream, uint64_t dst, uint64_t src, uint64_t n, int kind);

// kind_of turns the locations of an attribute into a kind; a batch moves between
// host and device only.
static int kind_of(const aclrtMemcpyBatchAttr *a) {
  if (a->dstLoc.type == 1 && a->srcLoc.type == 0) return H2D;
  if (a->dstLoc.type == 0 && a->srcLoc.type == 1) return D2H;
  return -1;
}

static int batch(void **dsts, size_t *maxs, void **srcs, size_t *sizes, size_t n, aclrtMemcpyBatchAttr *attrs, size_t *indexes, size_t nattrs, size_t *failed, bool async, void *stream) {
  if (!n || !nattrs || !attrs || !indexes || indexes[0] != 0) return fail(E_PARAM, "EH0001: a batch without copies or attributes");
  for (int pass = 0; pass < 2; pass++) {  // nothing moves if one of them is wrong
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
      while (at + 1 < nattrs && indexes[at + 1] <= i) at++;
      int kind = kind_of(&attrs[at]), code = OK;
      int64_t ended;
      struct context *c = NULL;
      pthread_mutex_lock(&big);
      if (kind < 0) code = fail(E_PARAM, "EH0001: copy %zu of a batch: from location %d to %d", i, attrs[at].srcLoc.type, attrs[at].dstLoc.type);
      // The host's side of a batch is pinned, whether it is asynchronous or not.
      if (!code) code = check_copy((uint64_t)dsts[i], maxs[i], (uint64_t)srcs[i], sizes[i], kind, true);
      if (!code) code = current(&c);
      pthread_mutex_unlock(&big);
      if (!code && pass) code = async ? queue_copy(stream, (uint64_t)dsts[i], (uint64_t)srcs[i], sizes[i], kind) : run_copy(c->device, (uint64_t)dsts[i], (uint64_t)srcs[i], sizes[i], kind, now_us(), &ended);
      if (code) {
        *failed = i;
        return code;
      }
    }
  }
  return OK;
}

API int aclrtMemcpyBatch(void **dsts, size_t *maxs, void **srcs, size_t *sizes, size_t n, aclrtMemcpyBatchAttr *attrs, size_t *indexes, size_t nattrs, size_t *failed) {
  int code = enter("aclrtMemcpyBatch");
  return code ? code : batch(dsts, maxs, srcs, sizes, n, attrs, indexes, nattrs, failed, false, NULL);
}

API int aclrtMemcpyBatchAsync(void **dsts, size_t *maxs, void **srcs, size_t *sizes, size_t n, aclrtMemcpyBatchAttr *attrs, size_t *indexes, size_t nattrs, size_t *failed, void *stream) {
  int code = enter("aclrtMemcpyBatchAsync");
  return code ? code : batch(dsts, maxs, srcs, sizes, n, attrs, indexes, nattrs, failed, true, stream);
}
