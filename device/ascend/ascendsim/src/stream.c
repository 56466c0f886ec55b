// Streams: a thread each, which does what is queued in order.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "sim.h"

struct stream {
  int device;
  struct context *context;
  pthread_t thread;
  pthread_cond_t more;
  struct task *first, *last;
  bool running, stop_on_error, aborted, ending;
  int error;
  int64_t ended;  // when the engine was done with what came before
  struct stream *next;
};

static struct stream *streams;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;  // an event, a value, an end

int stream_count(void) {
  int n = 0;
  for (struct stream *s = streams; s; s = s->next) n++;
  return n;
}

// alive checks a stream handle against this thread's context. Locked.
static int alive(void *handle, struct stream **out) {
  struct context *c;
  int code = current(&c);
  if (code) return code;
  for (struct stream *s = streams; s; s = s->next) {
    if (s != handle || s->ending) continue;
    *out = s;
    return s->context == c ? OK : fail(E_STREAM_CONTEXT, "EE1001: the stream belongs to another context");
  }
  return fail(E_HANDLE, "EE1001: no such stream");
}

void event_release(struct event *e);

static void wait_a_bit(pthread_cond_t *cond, int64_t us) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += us * 1000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  pthread_cond_timedwait(cond, &big, &t);
}

static bool holds(uint64_t word, uint64_t value, int mode) {
  switch (mode) {
    case 0: return (int64_t)(word - value) >= 0;
    case 1: return word == value;
    case 2: return (word & value) != 0;
    default: return ~(word | value) != 0;
  }
}

// value does what a stream does with a word; locked.
static int value(struct stream *s, struct task *t) {
  for (;;) {
    int code = lost(s->device);
    uint64_t *word = find(t->dst, 8) ? shadow(t->dst) : NULL;
    if (!code && !word) code = fail(E_MEM, "EZ9999: the word was freed");
    if (code) return code;
    if (t->kind == T_WRITE) {
      __atomic_store_n(word, t->value, __ATOMIC_SEQ_CST);
      pthread_cond_broadcast(&changed);
      return OK;
    }
    if (holds(__atomic_load_n(word, __ATOMIC_SEQ_CST), t->value, t->mode)) return OK;
    if (s->aborted) return E_STREAM_ABORT;
    wait_a_bit(&changed, 100);
  }
}

static int perform(struct stream *s, struct task *t) {
  switch (t->kind) {
    case T_COPY: {
      int64_t ready = t->queued > s->ended ? t->queued : s->ended;
      pthread_mutex_unlock(&big);
      int code = run_copy(s->device, t->dst, t->src, t->n, t->mode, ready, &s->ended);
      pthread_mutex_lock(&big);
      return code;
    }
    case T_RECORD:
      if (t->event->done < t->number) t->event->done = t->number;
      pthread_cond_broadcast(&changed);
      return OK;
    case T_WAIT_EVENT:
      while (t->event->done < t->number && !t->event->error && !s->aborted) wait_a_bit(&changed, 1000);
      return s->aborted ? E_STREAM_ABORT : t->event->error;
    case T_WRITE:
    case T_WAIT_VALUE:
      return value(s, t);
    default:
      pthread_mutex_unlock(&big);
      t->func(t->arg);
      pthread_mutex_lock(&big);
      return OK;
  }
}

// skipped tells who depends on a task that it will not be done.
static void skipped(struct stream *s, struct task *t) {
  if (t->kind == T_RECORD) {
    t->event->error = s->error;
    pthread_cond_broadcast(&changed);
  }
}

static void *engine(void *arg) {
  struct stream *s = arg;
  prctl(PR_SET_TIMERSLACK, 1000);  // an engine is not 50 us late
  pthread_mutex_lock(&big);
  for (;;) {
    while (!s->first && !s->ending) pthread_cond_wait(&s->more, &big);
    struct task *t = s->first;
    if (!t) break;
    s->first = t->next;
    s->running = true;
    if (s->aborted && !s->error) s->error = E_STREAM_ABORT;
    if (s->aborted || (s->error && s->stop_on_error)) {
      skipped(s, t);
    } else {
      int code = perform(s, t);
      if (t->kind == T_WAIT_EVENT || t->kind == T_WAIT_VALUE) s->ended = now_us();
      if (code && !s->error) s->error = code;
      if (code) skipped(s, t);
    }
    if (t->event) {
      t->event->users--;
      event_release(t->event);
    }
    free(t);
    s->running = false;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&big);
  return NULL;
}

API int aclrtCreateStreamWithConfig(void **out, uint32_t priority, uint32_t flag) {
  struct context *c;
  int code = enter("aclrtCreateStreamWithConfig");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = current(&c))) {
    if (priority > 7 || (flag & ~0x3fu)) code = fail(E_PARAM, "EH0001: priority %u, flag %#x", priority, flag);
    else if (stream_count() >= config.streams) code = fail(E_STREAMS, "EE9999: %d streams exist", stream_count());
    else {
      struct stream *s = calloc(1, sizeof *s);
      s->device = c->device;
      s->context = c;
      pthread_cond_init(&s->more, NULL);
      if (pthread_create(&s->thread, NULL, engine, s)) {
        free(s);
        code = fail(E_RESOURCE, "no thread for a stream");
      } else {
        s->next = streams;
        streams = s;
        *out = s;
      }
    }
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtCreateStream(void **out) {
  int code = enter("aclrtCreateStream");
  return code ? code : aclrtCreateStreamWithConfig(out, 0, 0);
}

API int aclrtDeviceGetStreamPriorityRange(int32_t *least, int32_t *greatest) {
  *least = 7;
  *greatest = 0;
  return enter("aclrtDeviceGetStreamPriorityRange");
}

// finish ends a stream's thread and forgets it. Locked on entry, not on return.
static void finish(struct stream *s, bool force) {
  if (force) s->aborted = true;
  s->ending = true;
  pthread_cond_broadcast(&s->more);
  pthread_cond_broadcast(&changed);
  for (struct stream **p = &streams; *p; p = &(*p)->next) {
    if (*p == s) {
      *p = s->next;
      break;
    }
  }
  pthread_mutex_unlock(&big);
  pthread_join(s->thread, NULL);
  pthread_cond_destroy(&s->more);
  free(s);
}

static int destroy(const char *call, void *handle, bool force) {
  struct stream *s;
  int code = enter(call);
  if (code) return code;
  pthread_mutex_lock(&big);
  code = alive(handle, &s);
  if (code == E_LOST && force) {  // what is lost can be thrown away
    for (s = streams; s && s != handle; s = s->next) {
    }
    if (s) code = OK;
  }
  if (!code && !force && (s->first || s->running)) code = fail(E_PARAM, "EE1001: the stream still has work: synchronize it first");
  if (code) {
    pthread_mutex_unlock(&big);
    return code;
  }
  finish(s, force);
  return OK;
}

API int aclrtDestroyStream(void *s) { return destroy("aclrtDestroyStream", s, false); }

API int aclrtDestroyStreamForce(void *s) { return destroy("aclrtDestroyStreamForce", s, true); }

void streams_reset(int device) {
  for (;;) {
    pthread_mutex_lock(&big);
    struct stream *s = streams;
    while (s && s->device != device) s = s->next;
    if (!s) break;
    finish(s, true);
  }
  pthread_mutex_unlock(&big);
}

API int aclrtStreamAbort(void *handle) {
  struct stream *s;
  int code = enter("aclrtStreamAbort");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = alive(handle, &s))) {
    s->aborted = true;
    s->error = E_STREAM_ABORT;
    pthread_cond_broadcast(&changed);
    while (s->first || s->running) wait_a_bit(&changed, 1000);
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtSetStreamFailureMode(void *handle, uint64_t mode) {
  struct stream *s;
  int code = enter("aclrtSetStreamFailureMode");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (mode > 1) code = fail(E_PARAM, "EH0001: failure mode %llu", (unsigned long long)mode);
  if (!code && !(code = alive(handle, &s))) s->stop_on_error = mode == 1;
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtStreamQuery(void *handle, int *status) {
  struct stream *s;
  int code = enter("aclrtStreamQuery");
  if (code) return code;
  pthread_mutex_lock(&big);
  if (!(code = alive(handle, &s))) {
    *status = s->first || s->running ? 1 : 0;
    if (s->error) code = fail(s->error, "EZ9999: work of the stream failed");
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtSynchronizeStreamWithTimeout(void *handle, int32_t ms) {
  struct stream *s;
  int code = enter("aclrtSynchronizeStreamWithTimeout");
  if (code) return code;
  int64_t end = now_us() + (int64_t)ms * 1000;
  pthread_mutex_lock(&big);
  if (!(code = alive(handle, &s))) {
    while (!code && (s->first || s->running)) {
      if (ms >= 0 && now_us() >= end) code = fail(E_STREAM_TIMEOUT, "EE9999: the stream still has work after %d ms", ms);
      else wait_a_bit(&changed, 1000);
    }
    if (!code && s->error) code = fail(s->error, "EZ9999: work of the stream failed");
  }
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtSynchronizeStream(void *handle) { return aclrtSynchronizeStreamWithTimeout(handle, -1); }

// queue appends a task. Locked.
int queue(void *handle, struct task t) {
  struct stream *s;
  int code = alive(handle, &s);
  if (code) return code;
  if (s->aborted) return fail(E_STREAM_ABORT, "EE1001: the stream was aborted");
  if (s->error && s->stop_on_error) return fail(s->error, "EZ9999: work of the stream failed before");
  struct task *own = malloc(sizeof *own);
  *own = t;
  own->queued = now_us();
  own->next = NULL;
  if (t.event) t.event->users++;
  if (s->first) s->last->next = own;
  else s->first = own;
  s->last = own;
  pthread_cond_signal(&s->more);
  return OK;
}

int queue_copy(void *stream, uint64_t dst, uint64_t src, uint64_t n, int kind) {
  pthread_mutex_lock(&big);
  int code = queue(stream, (struct task){.kind = T_COPY, .dst = dst, .src = src, .n = n, .mode = kind});
  pthread_mutex_unlock(&big);
  return code;
}

API int aclrtMemcpyAsync(void *dst, size_t max, const void *src, size_t n, int kind, void *stream) {
  int code = enter("aclrtMemcpyAsync");
  if (code) return code;
  pthread_mutex_lock(&big);
  code = check_copy((uint64_t)dst, max, (uint64_t)src, n, kind, true);
  pthread_mutex_unlock(&big);
  return code ? code : queue_copy(stream, (uint64_t)dst, (uint64_t)src, n, kind);
}
