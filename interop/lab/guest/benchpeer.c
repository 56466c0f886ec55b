/*
 * benchpeer: what hixl-bench --serve is, on libibverbs. It speaks the control
 * protocol of package bench, so that an unmodified hixl-bench --peer measures and
 * verifies transfers to and from memory that a device of the kernel's serves. The
 * pattern and the places of messages are computed here again and not shared.
 *
 *	benchpeer		serves one requester, on TCP port 18515
 *
 * A request is a line of JSON, and all that is read of it are the values behind
 * names. It is for the lab: it believes what it is told.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 18515
#define VERSION 4
#define ALIGN 64
#define SHIFTS 61
#define GOLDEN 0x9E3779B97F4A7C15ull
#define LINE (1 << 20)
#define LANES 64
#define RECEIVES 2048 /* posted on a lane */
#define SETTLE 10000  /* ms in which receives that were acknowledged come */

static struct ibv_context *device;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int gid_index, family;
static char host[INET6_ADDRSTRLEN];
static FILE *from, *to;
static int control;

static struct memory {
	uint8_t *b;
	size_t size;
	struct ibv_mr *mr;
} src, dst;

static struct cell {
	bool open;
	char op[16];
	size_t size, stride, slots;
	long qps, depth, mtu, id;
	struct ibv_cq *cq;
	struct ibv_qp *qp[LANES];
	uint64_t posted[LANES], taken[LANES]; /* receives */
} cells[256];

static char wrong[200]; /* a mismatch to report */

static void fail(const char *format, ...)
{
	va_list args;
	int e = errno;

	va_start(args, format);
	fprintf(stderr, "benchpeer: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, e ? ": %s\n" : "\n", strerror(e));
	exit(1);
}

static void must(const char *what, int failed)
{
	errno = failed; /* as verbs say it */
	if (failed)
		fail("%s", what);
}

static long ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is(const char *s, const char *t) { return !strcmp(s, t); }

/* --- JSON ------------------------------------------------------------------- */

/* What follows "name": in a text, or null. What is false or 0 is left out of requests. */
static const char *find(const char *text, const char *name)
{
	char key[40];

	snprintf(key, sizeof key, "\"%s\":", name);
	text = text ? strstr(text, key) : 0;
	return text ? text + strlen(key) : 0;
}

static uint64_t number(const char *text, const char *name)
{
	text = find(text, name);
	return text ? strtoull(text, 0, 10) : 0;
}

static void word(const char *text, const char *name, char *buf, size_t room)
{
	text = find(text, name);
	*buf = 0;
	if (text && *text == '"')
		snprintf(buf, room, "%.*s", (int)strcspn(text + 1, "\""), text + 1);
}

/* --- pattern and places: see package bench ---------------------------------- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static uint64_t pattern(uint64_t key, uint64_t i) { return mix(key + i * GOLDEN); }
static uint8_t byte(uint64_t key, uint64_t at) { return pattern(key, at / 8) >> at % 8 * 8; }
static uint64_t counter(uint64_t key, long i) { return pattern(key, (1ull << 40) + i); }

static bool receives(const struct cell *c) { return is(c->op, "send") || is(c->op, "write-imm"); }
static bool atomic(const struct cell *c) { return is(c->op, "cas") || is(c->op, "faa"); }

static void lay_out(struct cell *c)
{
	size_t size = atomic(c) ? 8 * (size_t)c->depth : c->size;

	c->stride = (size + ALIGN - 1) / ALIGN * ALIGN;
	c->slots = dst.size / c->qps / c->stride;
	if (!c->slots)
		fail("the region is too small");
}

static size_t place(const struct cell *c, long lane, size_t slot) { return (lane * c->slots + slot) * c->stride; }

/* --- memory ------------------------------------------------------------------- */

static void make(struct memory *m, size_t size)
{
	m->size = size;
	m->b = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	if (!m->b)
		fail("memory");
	memset(m->b, 0, size);
	m->mr = ibv_reg_mr(pd, m->b, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!m->mr)
		fail("registering %zu bytes", size);
}

static void prepare(const char *request)
{
	const char *p = find(request, "prepare");
	uint64_t key = number(p, "key"), counters = number(p, "counters");

	if (find(p, "fill"))
		for (size_t i = 0; i < src.size; i += 8) {
			uint64_t w = pattern(key, i / 8);
			memcpy(src.b + i, &w, src.size - i < 8 ? src.size - i : 8);
		}
	if (find(p, "clear"))
		memset(dst.b, 0, dst.size);
	for (uint64_t i = 0; i < counters; i++) {
		uint64_t w = counter(key, i);
		memcpy(dst.b + i * ALIGN, &w, 8);
	}
}

static bool mismatch(size_t at, uint8_t want)
{
	snprintf(wrong, sizeof wrong, "{\"mismatch\":{\"offset\":%zu,\"want\":%u,\"got\":%u}}", at, want, dst.b[at]);
	return false;
}

static bool clear(size_t at, size_t end)
{
	for (; at < end; at++)
		if (dst.b[at])
			return mismatch(at, 0);
	return true;
}

/* Checks a slot: the last message of [first, last) that went there, or zeros. */
static bool slot_right(const struct cell *c, uint64_t key, long lane, uint64_t slot, uint64_t first, uint64_t last)
{
	size_t at = place(c, lane, slot);
	uint64_t lap = last > slot ? (last - 1 - slot) / c->slots : 0;

	if (last <= slot || lap * c->slots + slot < first)
		return clear(at, at + c->stride);
	size_t source = at + lap % SHIFTS * ALIGN;
	for (size_t i = 0; i < c->size; i++)
		if (dst.b[at + i] != byte(key, source + i))
			return mismatch(at + i, byte(key, source + i));
	return clear(at + c->size, at + c->stride);
}

static bool counter_right(uint64_t key, long i, uint64_t n)
{
	uint64_t got, want = counter(key, i) + n;

	memcpy(&got, dst.b + i * ALIGN, 8);
	if (got == want)
		return true;
	snprintf(wrong, sizeof wrong, "{\"mismatch\":{\"offset\":%ld,\"detail\":\"counter %ld: want %#llx, got %#llx\"}}", i * ALIGN, i,
		 (unsigned long long)want, (unsigned long long)got);
	return false;
}

/* --- receives ----------------------------------------------------------------- */

static void post(struct cell *c, long lane)
{
	uint64_t n = c->posted[lane]++;
	struct ibv_sge sge = {(uintptr_t)dst.b + place(c, lane, n % c->slots), c->size, dst.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = (uint64_t)lane << 48 | n, .sg_list = &sge, .num_sge = is(c->op, "send")};

	must("posting a receive", ibv_post_recv(c->qp[lane], &wr, &bad));
}

/* Takes the receives that have come; false when there are none. */
static bool take(struct cell *c)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(c->cq, 16, wc);

	if (n < 0)
		fail("polling");
	for (int i = 0; i < n; i++) {
		long lane = wc[i].wr_id >> 48;
		uint64_t id = wc[i].wr_id << 16 >> 16;
		bool imm = is(c->op, "write-imm");

		if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc[i].status || id != c->taken[lane] || wc[i].byte_len != c->size ||
		    (imm && (!(wc[i].wc_flags & IBV_WC_WITH_IMM) || ntohl(wc[i].imm_data) != (uint32_t)id)))
			snprintf(wrong, sizeof wrong,
				 "{\"mismatch\":{\"detail\":\"receive %llu, after %llu: status %d, %u bytes, flags %#x, immediate %#x\"}}",
				 (unsigned long long)id, (unsigned long long)c->taken[lane], wc[i].status, wc[i].byte_len,
				 wc[i].wc_flags, ntohl(wc[i].imm_data));
		c->taken[lane] = id + 1;
		post(c, lane);
	}
	return n > 0;
}

static bool settled(struct cell *c, long lane, uint64_t sent)
{
	for (long end = ms() + SETTLE; c->taken[lane] != sent && ms() < end;)
		if (!take(c))
			usleep(100);
	if (c->taken[lane] == sent)
		return true;
	snprintf(wrong, sizeof wrong, "{\"mismatch\":{\"detail\":\"%llu messages received, %llu sent\"}}", (unsigned long long)c->taken[lane],
		 (unsigned long long)sent);
	return false;
}

/* --- queue pairs ---------------------------------------------------------------- */

static void connect_qp(struct cell *c, long lane, const char *address, uint32_t psn)
{
	unsigned qpn, rq_psn;
	char ip[INET6_ADDRSTRLEN];
	struct in6_addr peer = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
	long mtu, reads = c->depth < 128 ? c->depth : 128;

	if (sscanf(address, "hixl1,%45[^,],qpn=0x%x,psn=0x%x,mtu=%ld", ip, &qpn, &rq_psn, &mtu) != 4 ||
	    inet_pton(family, ip, family == AF_INET ? (void *)&peer.s6_addr[12] : &peer) != 1)
		fail("not an address");
	if (c->mtu) /* else the largest that both ends can */
		mtu = c->mtu;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256 + __builtin_ctzl(mtu / 256), .dest_qp_num = qpn, .rq_psn = rq_psn,
		.max_dest_rd_atomic = reads, .min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = gid_index, .hop_limit = 64}},
	};
	memcpy(attr.ah_attr.grh.dgid.raw, &peer, 16);
	must("RTR", ibv_modify_qp(c->qp[lane], &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = psn, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = reads};
	must("RTS", ibv_modify_qp(c->qp[lane], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_MAX_QP_RD_ATOMIC));
}

static void open_lane(struct cell *c, long lane, const char *address, uint32_t psn)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = c->cq, .recv_cq = c->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = RECEIVES + 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (!(c->qp[lane] = ibv_create_qp(pd, &init)))
		fail("creating a queue pair");
	must("INIT", ibv_modify_qp(c->qp[lane], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	connect_qp(c, lane, address, psn);
	for (int i = 0; receives(c) && i < RECEIVES; i++)
		post(c, lane);
}

static struct cell *cell(uint64_t id)
{
	if (id >= sizeof cells / sizeof *cells)
		fail("too many cells");
	return &cells[id];
}

static void open_cell(const char *request)
{
	const char *o = find(request, "cell"), *address = find(request, "addresses");
	struct cell *c = cell(number(o, "id"));

	*c = (struct cell){.open = true, .size = number(o, "size"), .qps = number(o, "qps"), .depth = number(o, "depth"), .mtu = number(o, "mtu")};
	word(o, "op", c->op, sizeof c->op);
	if (c->qps < 1 || c->qps > LANES)
		fail("%ld queue pairs", c->qps);
	lay_out(c);
	if (!(c->cq = ibv_create_cq(device, c->qps * (RECEIVES + 32), 0, 0, 0)))
		fail("creating a completion queue");
	fprintf(to, "{\"addresses\":[");
	for (long i = 0; i < c->qps; i++) {
		uint32_t psn = mix(ms() + i) & 0xffffff;

		if (!(address = strstr(address, "\"hixl1,")))
			fail("an address is missing");
		open_lane(c, i, ++address, psn);
		fprintf(to, "%s\"hixl1,%s,qpn=0x%06x,psn=0x%06x,mtu=%ld,reads=%ld\"", i ? "," : "", host, c->qp[i]->qp_num, psn, c->mtu ? c->mtu : 4096,
			c->depth < 128 ? c->depth : 128);
	}
	fprintf(to, "]}\n");
}

static void close_cell(struct cell *c)
{
	if (!c->open)
		return;
	for (long i = 0; i < c->qps; i++)
		ibv_destroy_qp(c->qp[i]);
	ibv_destroy_cq(c->cq);
	c->open = false;
}

/* Verifies what a round has left here. */
static bool finish(const char *request)
{
	struct cell *c = cell(number(request, "cell"));
	uint64_t key = number(find(request, "prepare"), "key"), total = 0;
	const char *span = find(request, "spans");

	for (long lane = 0; lane < c->qps; lane++) {
		uint64_t first = number(span, "from"), last = number(span, "to");

		span = find(span, "to");
		total += last - first;
		if (receives(c) && !settled(c, lane, last))
			return false;
		if (is(c->op, "cas") && !counter_right(key, lane, last - first))
			return false;
		for (size_t s = 0; !atomic(c) && !is(c->op, "read") && s < c->slots; s++)
			if (!slot_right(c, key, lane, s, first, last))
				return false;
	}
	if (is(c->op, "faa"))
		return counter_right(key, 0, total);
	return atomic(c) || is(c->op, "read") || clear(c->qps * c->slots * c->stride, dst.size);
}

/* --- the session ------------------------------------------------------------------ */

static void hello(const char *request)
{
	struct ibv_device **list = ibv_get_device_list(0);
	size_t region = number(request, "region");

	if (number(request, "version") != VERSION)
		fail("control protocol %llu instead of %d", (unsigned long long)number(request, "version"), VERSION);
	if (!list || !*list || !(device = ibv_open_device(*list)) || !(pd = ibv_alloc_pd(device)))
		fail("no RDMA device");
	union ibv_gid g;
	for (gid_index = 0;; gid_index++) {
		if (ibv_query_gid(device, 1, gid_index, &g))
			fail("no GID for %s", host);
		if (!memcmp(&g, &gid, sizeof g))
			break;
	}
	make(&src, region + SHIFTS * ALIGN);
	make(&dst, region);
	fprintf(to, "{\"welcome\":{\"addr\":\"%s\",\"Src\":{\"addr\":%llu,\"rkey\":%u},\"Dst\":{\"addr\":%llu,\"rkey\":%u}}}\n", host,
		(unsigned long long)(uintptr_t)src.b, src.mr->rkey, (unsigned long long)(uintptr_t)dst.b, dst.mr->rkey);
}

static void usage(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	fprintf(to, "{\"usage\":{\"cpu\":%lld}}\n",
		(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000ll + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000ll);
}

static void answer(const char *request)
{
	char verb[16];

	word(request, "do", verb, sizeof verb);
	if (is(verb, "hello"))
		hello(request);
	else if (!pd)
		fail("not before hello");
	else if (is(verb, "open"))
		open_cell(request);
	else if (is(verb, "usage"))
		usage();
	else if (is(verb, "prepare")) {
		prepare(request);
		fprintf(to, "{}\n");
	} else if (is(verb, "finish")) {
		finish(request);
		fprintf(to, "%s\n", *wrong ? wrong : "{}");
		*wrong = 0;
	} else if (is(verb, "close")) {
		close_cell(cell(number(request, "cell")));
		fprintf(to, "{}\n");
	} else
		fprintf(to, "{\"err\":\"%s: not on this peer\"}\n", verb);
	fflush(to);
}

/* Waits for a request and takes receives meanwhile. */
static bool request(char *buf)
{
	for (;;) {
		struct pollfd p = {control, POLLIN, 0};
		bool open = false, came = false;

		for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
			if (cells[i].open && receives(&cells[i])) {
				open = true;
				came |= take(&cells[i]);
			}
		if (poll(&p, 1, came ? 0 : open ? 1 : -1) > 0)
			return fgets(buf, LINE, from);
	}
}

static void session(int s)
{
	static char buf[LINE];
	struct sockaddr_in6 me;
	socklen_t room = sizeof me;
	int on = 1;

	control = s;
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (getsockname(s, (struct sockaddr *)&me, &room))
		fail("getsockname");
	memcpy(&gid, &me.sin6_addr, sizeof gid);
	family = IN6_IS_ADDR_V4MAPPED(&me.sin6_addr) ? AF_INET : AF_INET6;
	inet_ntop(family, family == AF_INET ? (void *)&me.sin6_addr.s6_addr[12] : &me.sin6_addr, host, sizeof host);
	from = fdopen(s, "r");
	to = fdopen(dup(s), "w");
	if (!from || !to)
		fail("fdopen");
	setvbuf(from, 0, _IONBF, 0); /* what has come is seen by poll */
	errno = 0;
	while (request(buf))
		answer(buf);
}

int main(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	int on = 1, l = socket(AF_INET6, SOCK_STREAM, 0), s;

	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l, (struct sockaddr *)&any, sizeof any) || listen(l, 16))
		fail("listening on port %d", PORT);
	if ((s = accept(l, 0, 0)) < 0)
		fail("accepting");
	session(s);
	return 0;
}
