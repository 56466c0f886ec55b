// What the files of the simulated driver share.
#ifndef ASCENDSIM_H
#define ASCENDSIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

// Error codes, as the runtime numbers them.
enum {
  OK = 0,
  E_PARAM = 107000,
  E_UNINIT = 100001,
  E_REPEAT_INIT = 100002,
  E_DEVICE_ID = 107001,
  E_NO_CONTEXT = 107002,
  E_STREAM_CONTEXT = 107003,
  E_ALIGN = 107008,
  E_MEM_TYPE = 107016,
  E_HANDLE = 107017,
  E_WAIT_TIMEOUT = 107019,
  E_STREAM_ABORT = 107023,
  E_UNSUPPORTED = 207000,
  E_STREAMS = 207008,
  E_RESOURCE = 207005,
  E_OOM = 207018,
  E_STREAM_TIMEOUT = 507046,
  E_MEM = 507053,
  E_LOST = 507010,
};

// Driver (HAL) codes.
enum { D_OK = 0, D_DEVICE = 2, D_VALUE = 3, D_OOM = 6, D_PARA = 8, D_ABSENT = 11, D_REPEATED = 12, D_UNSUPPORTED = 0xfffe };

enum { MAX_DEVICES = 8, MAX_STREAMS = 1984, MAX_EVENTS = 65536 };

#define DEVICE_SPAN ((uint64_t)64 << 30)  // addresses of one device
#define PAGE ((uint64_t)4096)
#define GRANULE ((uint64_t)2 << 20)  // of virtual memory management

// What ascendsim_set and the environment can choose. Times are in microseconds.
struct config {
  int64_t devices, memory, bandwidth, latency, wait;
  int mapping;  // 0 absent, 1 present
  int64_t mapping_limit;
  int vmm;  // 1: virtual memory management can map for the host
  int64_t streams;
  bool pageable_async;  // asynchronous copies of unpinned memory run at once instead of failing
};
extern struct config config;

extern pthread_mutex_t big;  // guards everything that is not a stream's queue

// fail returns the code and keeps a message for aclGetRecentErrMsg.
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
// enter is what every call does first: it counts, injects what the environment
// asks for, and checks that the library is initialised.
int enter(const char *call);
// lost tells whether device d was lost, and counts one more use of it. Locked.
int lost(int d);
struct context {
  int device;
  bool alive;
  struct context *next;
};
// current checks that this thread has a context, and that its device is there.
// Locked.
int current(struct context **out);

// Memory.
enum kind { K_NONE, K_DEVICE, K_HOST, K_PHYSICAL };
struct alloc {
  enum kind kind;
  uint64_t addr, size;  // of the address that users see
  uint64_t asked;
  int device;
  uint64_t offset;  // in the device's backing file
  uint64_t mapped;  // host address of a mapping, 0 is none
  uint64_t mapped_size, mapped_from;
  bool vmm;  // a view of physical memory
  int busy;  // engines that use it now
  struct alloc *next;
};
// find returns the allocation that contains [p, p+n), locked.
struct alloc *find(uint64_t p, uint64_t n);
// shadow is where the CPU finds the bytes of a device address.
void *shadow(uint64_t p);
bool is_device_address(uint64_t p);
int device_of(uint64_t p);
int memory_init(void);
void memory_reset(int device);
int64_t count_allocs(enum kind k);
int64_t count_mappings(void);
int64_t count_vmm(void);
void vmm_reset(int device);
extern int backing[MAX_DEVICES];
uint64_t take_addresses(int device, uint64_t size, uint64_t align);
uint64_t take_offset(int device, uint64_t size);
void add_alloc(struct alloc *a);
void drop_alloc(struct alloc *a);
void give_back(int device, uint64_t offset, uint64_t size);
int64_t used_on(int device);

// Copies.
enum { H2H, H2D, D2H, D2D, DEFAULT_KIND };
// check_copy checks a copy's arguments as seen from a call; locked.
int check_copy(uint64_t dst, uint64_t max, uint64_t src, uint64_t n, int kind, bool async);
// run_copy does it, paced: the engine could begin at ready, and *ended is when it
// has ended by its own time, which the thread may reach a little late.
int run_copy(int device, uint64_t dst, uint64_t src, uint64_t n, int kind, int64_t ready, int64_t *ended);

// Streams.
enum task_kind { T_COPY, T_RECORD, T_WAIT_EVENT, T_WRITE, T_WAIT_VALUE, T_FUNC };
struct event {
  uint64_t recorded, done;
  bool alive;
  int device;
  int error;
  int users;  // tasks that will look at it
};
struct task {
  enum task_kind kind;
  uint64_t dst, src, n, value;
  int64_t queued;  // when
  int mode;
  struct event *event;
  uint64_t number;
  void (*func)(void *);
  void *arg;
  struct task *next;
};
int stream_count(void);
int event_count(void);
void streams_reset(int device);
int64_t now_us(void);
int64_t env_int(const char *name, int64_t otherwise);

#endif
