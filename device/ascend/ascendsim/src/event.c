// Events, values and callbacks.
#include <stdlib.h>

#include "sim.h"

int queue(void *handle, struct task t);

static struct event *events[MAX_EVENTS];
static int nevents;

int event_count(void) {
  int n = 0;
  for (int i = 0; i < nevents; i++) n += events[i] && events[i]->alive;
  return n;
}

// known checks an event handle; locked.
static int known(void *handle, struct event **out) {
  struct context *c;
  int code = current(&c);
  if (code) return code;
  for (int i = 0; i < nevents; i++) {
    if (events[i] && events[i] == handle && events[i]->alive) {
      *out = events[i];
      return OK;
    }
  }
  return fail(E_HANDLE, "EE1001: no such event");
}

void event_release(struct event *e) {
  if (e->alive || e->users) return;
  for (int i = 0; i < nevents; i++) {
    if (events[i] == e) events[i] = NULL;
  }
  free(e);
}

static int create(const char *call, void **out) {
  struct context *c;
  int code = enter(call);
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    int i = 0;
    while (i < nevents && events[i]) i++;
    if (i == MAX_EVENTS) code = fail(E_RESOURCE, "EE9999: %d events exist", nevents);
    else {
      if (i == nevents) nevents++;
      events[i] = calloc(1, sizeof *events[i]);
      events[i]->alive = true;
      events[i]->device = c->device;
      *out = events[i];
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtCreateEvent(void **out) { return create("aclrtCreateEvent", out); }

API int aclrtCreateEventWithFlag(void **out, uint32_t flag) {
  return flag & ~0x7bu ? fail(E_PARAM, "EH0001: event flag %#x", flag) : create("aclrtCreateEventWithFlag", out);
}

API int aclrtCreateEventExWithFlag(void **out, uint32_t flag) {
  return flag & ~0x7bu ? fail(E_PARAM, "EH0001: event flag %#x", flag) : create("aclrtCreateEventExWithFlag", out);
}

API int aclrtDestroyEvent(void *handle) {
  struct event *e;
  int code = enter("aclrtDestroyEvent");
  if (code) return code;
  pthread_mutex_lock(&big);
  code = known(handle, &e);
  if (!code) {
    e->alive = false;
    event_release(e);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtRecordEvent(void *handle, void *stream) {
  struct event *e;
  int code = enter("aclrtRecordEvent");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = known(handle, &e)) && !(code = queue(stream, (struct task){.kind = T_RECORD, .event = e, .number = e->recorded + 1}))) e->recorded++;
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtStreamWaitEvent(void *stream, void *handle) {
  struct event *e;
  int code = enter("aclrtStreamWaitEvent");
  if (code) return code;
  pthread_mutex_lock(&big);
  // An event that was never recorded is waited for until it is.
  if (!(code = known(handle, &e))) code = queue(stream, (struct task){.kind = T_WAIT_EVENT, .event = e, .number = e->recorded ? e->recorded : 1});
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtQueryEventStatus(void *handle, int *status) {
  struct event *e;
  int code = enter("aclrtQueryEventStatus");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = known(handle, &e))) {
    *status = e->recorded && e->done >= e->recorded ? 1 : 0;  // 1 is complete here
    if (!*status && e->error) code = fail(e->error, "EZ9999: work before the event failed");
  }
  pthread_mutex_unlock(&big);
  return code;
}

static int word(const char *call, void *addr) {
  int code = enter(call);
  if (code) return code;
  if ((uint64_t)addr % 8) return fail(E_ALIGN, "EE1001: %s: %p is not 8-byte aligned", call, addr);
  pthread_mutex_lock(&big);
  struct alloc *a = find((uint64_t)addr, 8);
  if (!a || a->kind != K_DEVICE) code = fail(E_PARAM, "EE1001: %s: %p is no device memory", call, addr);
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtValueWrite(void *addr, uint64_t value, uint32_t flag, void *stream) {
  int code = word("aclrtValueWrite", addr);
  if (!code && flag) code = fail(E_PARAM, "EH0001: aclrtValueWrite flag %u", flag);
  if (code) return code;
  pthread_mutex_lock(&big);
  code = queue(stream, (struct task){.kind = T_WRITE, .dst = (uint64_t)addr, .value = value});
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtValueWait(void *addr, uint64_t value, uint32_t flag, void *stream) {
  int code = word("aclrtValueWait", addr);
  if (!code && flag > 3) code = fail(E_PARAM, "EH0001: aclrtValueWait flag %u", flag);
  if (code) return code;
  pthread_mutex_lock(&big);
  code = queue(stream, (struct task){.kind = T_WAIT_VALUE, .dst = (uint64_t)addr, .value = value, .mode = (int)flag});
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtLaunchHostFunc(void *stream, void (*func)(void *), void *arg) {
  int code = enter("aclrtLaunchHostFunc");
  if (!code && !func) code = fail(E_PARAM, "EH0001: no function");
  if (code) return code;
  pthread_mutex_lock(&big);
  code = queue(stream, (struct task){.kind = T_FUNC, .func = func, .arg = arg});
  pthread_mutex_unlock(&big);
  return code;
}
