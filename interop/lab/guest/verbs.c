/*
 * verbs: one kind of RDMA operation between two ends, described by the active one.
 *
 *	verbs serve				the passive end, for any number of cases
 *	verbs HOST [KEY=VALUE ...]		the active end of one case
 *
 * The keys are in the table below. Over TCP port 7801 go lines: the case, then the
 * ends of both, then
 *
 *	passive:  ready
 *	active:   done			when its operations have ended
 *	passive:  wc ...		a line a receive completion
 *	passive:  slots final=N initial=N mixed=N
 *	passive:  bye
 *
 * Memory is slots, one a message, filled with a pattern of the end they belong to.
 * At the end each is as the operations should leave it (final), as it was before
 * (initial), or neither (mixed). The active end prints its completions and slots,
 * and those of the passive one with "peer" before them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT "7801"
#define QKEY 0x00780001
#define IMM 0xcafe0000u
#define GRH 40
#define SLOT 64 /* slots are whole multiples */

/* What a case can say, with defaults. */
static struct {
	char op[16], qp[4], access[8];
	long size, count, mtu, family, psn, batch, inline_, srq, recv, recv_delay, reads;
	long timeout, retries, rnr_timer, rnr_retries, wrong_key, wrong_qkey, offset, patience;
} c = {
	.op = "write", .qp = "rc", .access = "wra", .size = 64, .count = 1, .mtu = 1024, .family = 4, .psn = -1,
	.recv = -1, .reads = 16, .timeout = 14, .retries = 7, .rnr_timer = 12, .rnr_retries = 7, .patience = 300,
};

static const struct key {
	const char *name;
	char *text; /* or */
	long *number;
	size_t room;
} keys[] = {
	{"op", c.op, 0, sizeof c.op},		/* send send-imm send-inv write write-imm read cas faa */
	{"qp", c.qp, 0, sizeof c.qp},		/* rc uc ud */
	{"access", c.access, 0, sizeof c.access}, /* to the passive end's memory: of w r a, or - */
	{"size", 0, &c.size},			/* bytes a message */
	{"count", 0, &c.count},			/* messages */
	{"mtu", 0, &c.mtu},			/* path MTU in bytes */
	{"family", 0, &c.family},		/* 4 or 6 */
	{"psn", 0, &c.psn},			/* first PSN of the active end; -1 is random */
	{"batch", 0, &c.batch},			/* post all at once */
	{"inline", 0, &c.inline_},		/* send inline */
	{"srq", 0, &c.srq},			/* receive from a shared queue */
	{"recv", 0, &c.recv},			/* bytes of each receive; -1 is a slot */
	{"recv-delay", 0, &c.recv_delay},	/* ms until receives are posted */
	{"reads", 0, &c.reads},			/* READs and atomics in flight */
	{"timeout", 0, &c.timeout},		/* of the active end, as verbs count it */
	{"retries", 0, &c.retries},
	{"rnr-timer", 0, &c.rnr_timer},		/* of the passive end */
	{"rnr-retries", 0, &c.rnr_retries},
	{"wrong-key", 0, &c.wrong_key},		/* use an rkey that nobody gave */
	{"wrong-qkey", 0, &c.wrong_qkey},	/* UD: another Q_Key than the peer's */
	{"offset", 0, &c.offset},		/* added to the remote address */
	{"patience", 0, &c.patience},		/* ms without news the passive end waits for what is missing */
};

struct end {
	unsigned long long addr;
	unsigned qpn, psn, rkey;
	union ibv_gid gid;
};

static bool active;
static size_t stride, length;
static uint8_t *memory, grh[GRH];
static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_mr *region;
static struct ibv_mw *window;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static int gid_index;
static struct end me, peer;
static FILE *from, *to; /* the other end */

static void fail(const char *format, ...)
{
	va_list args;
	int e = errno;

	va_start(args, format);
	fprintf(stderr, "verbs: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, e ? ": %s\n" : "\n", strerror(e));
	exit(1);
}

static void must(const char *what, int failed)
{
	if (failed > 0)
		errno = failed; /* as most verbs say it */
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
static bool two_sided(void) { return !strncmp(c.op, "send", 4); }
static bool atomic(void) { return is(c.op, "cas") || is(c.op, "faa"); }
static bool receives(void) { return two_sided() || is(c.op, "write-imm"); }

/* --- the case and the lines ---------------------------------------------- */

static void set(const char *word)
{
	const char *value = strchr(word, '=');

	errno = 0;
	for (size_t i = 0; value && i < sizeof keys / sizeof *keys; i++) {
		const struct key *k = &keys[i];

		if (strlen(k->name) != (size_t)(value - word) || strncmp(k->name, word, value - word))
			continue;
		if (k->number)
			*k->number = strtol(value + 1, 0, 0);
		else
			snprintf(k->text, k->room, "%s", value + 1);
		return;
	}
	fail("no such key: %s", word);
}

static void get(char *buf, size_t room)
{
	if (!fgets(buf, room, from) || !strchr(buf, '\n'))
		fail("the other end is gone");
	*strchr(buf, '\n') = 0;
}

static void tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vfprintf(to, format, args) < 0 || fflush(to))
		fail("telling the other end");
}

static void exchange(bool first)
{
	char buf[256], hex[33];

	for (int i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", me.gid.raw[i]);
	snprintf(buf, sizeof buf, "end qpn=%x psn=%x gid=%s addr=%llx rkey=%x\n", me.qpn, me.psn, hex, me.addr, me.rkey);
	if (first)
		tell("%s", buf);
	char theirs[256];
	get(theirs, sizeof theirs);
	if (!first)
		tell("%s", buf);
	errno = 0;
	if (sscanf(theirs, "end qpn=%x psn=%x gid=%32s addr=%llx rkey=%x", &peer.qpn, &peer.psn, hex, &peer.addr, &peer.rkey) != 5)
		fail("not an end: %s", theirs);
	for (int i = 0; i < 16; i++)
		sscanf(hex + 2 * i, "%2hhx", &peer.gid.raw[i]);
}

/* --- memory --------------------------------------------------------------- */

/* The byte at offset i of what an end has at first, or sends. */
static uint8_t pattern(bool of_active, size_t i)
{
	return (uint32_t)(i * 2654435761u + (of_active ? 0x3c6ef372u : 0x9e3779b9u)) >> 24;
}

static uint64_t word(const uint8_t *b)
{
	uint64_t w;

	memcpy(&w, b, sizeof w);
	return w;
}

/* The value of the passive end's first word after n atomics. */
static uint64_t after(long n)
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = pattern(false, i);
	if (is(c.op, "faa"))
		return word(b) + n;
	/* every other compare-and-swap compares with what is not there */
	return n ? 0x1111111111111111ull * ((n + 1) / 2) : word(b);
}

/* Whether slot s holds what it should in the end. */
static bool final(long s)
{
	const uint8_t *b = memory + s * stride;

	if (atomic())
		return active ? word(b) == after(s) : s > 0 || word(b) == after(c.count);
	bool other = is(c.op, "read") ? active : !active; /* bytes of the other end arrive here */
	size_t changed = other ? c.size : 0;
	for (size_t i = 0; i < stride; i++)
		if (b[i] != pattern(i < changed ? !active : active, s * stride + i))
			return false;
	return true;
}

static bool initial(long s)
{
	for (size_t i = s * stride; i < (s + 1) * stride; i++)
		if (memory[i] != pattern(active, i))
			return false;
	return true;
}

static void slots(FILE *f)
{
	long n[3] = {0};

	for (long s = 0; s < c.count; s++)
		n[final(s) ? 0 : initial(s) ? 1 : 2]++;
	fprintf(f, "slots final=%ld initial=%ld mixed=%ld\n", n[0], n[1], n[2]);
}

/* --- verbs ------------------------------------------------------------------ */

/* Opens the device whose address is that of the TCP connection here. */
static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(0);
	struct sockaddr_in6 here;
	struct in6_addr want = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
	socklen_t room = sizeof here;

	if (getsockname(fileno(to), (struct sockaddr *)&here, &room))
		fail("getsockname");
	if (here.sin6_family == AF_INET6)
		want = here.sin6_addr;
	else
		memcpy(&want.s6_addr[12], &((struct sockaddr_in *)&here)->sin_addr, 4);
	for (; list && *list; list++) {
		if (!(device = ibv_open_device(*list)))
			fail("opening an RDMA device");
		for (gid_index = 0; !ibv_query_gid(device, 1, gid_index, &me.gid); gid_index++)
			if (!memcmp(&me.gid, &want, sizeof want))
				return;
		ibv_close_device(device);
	}
	errno = 0;
	fail("no RDMA device has the address of the connection");
}

static int rights(void)
{
	if (active)
		return IBV_ACCESS_LOCAL_WRITE;
	return IBV_ACCESS_LOCAL_WRITE | (is(c.op, "send-inv") ? IBV_ACCESS_MW_BIND : 0) |
	       (strchr(c.access, 'w') ? IBV_ACCESS_REMOTE_WRITE : 0) | (strchr(c.access, 'r') ? IBV_ACCESS_REMOTE_READ : 0) |
	       (strchr(c.access, 'a') ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static void make_memory(void)
{
	stride = (c.size + SLOT - 1) / SLOT * SLOT;
	if (!stride)
		stride = SLOT;
	length = stride * c.count;
	memory = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
	if (!memory)
		fail("memory");
	for (size_t i = 0; i < length; i++)
		memory[i] = pattern(active, i);
	pd = ibv_alloc_pd(device);
	if (!pd || !(region = ibv_reg_mr(pd, memory, length, rights())))
		fail("registering memory");
	me.addr = (uintptr_t)memory;
	me.rkey = region->rkey;
}

static void make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = is(c.qp, "ud") ? IBV_QPT_UD : is(c.qp, "uc") ? IBV_QPT_UC : IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = c.count + 2, .max_recv_wr = c.count + 2, .max_send_sge = 2, .max_recv_sge = 2,
			.max_inline_data = c.inline_ ? c.size : 0},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	cq = ibv_create_cq(device, 2 * c.count + 8, 0, 0, 0);
	if (!cq)
		fail("creating a completion queue");
	if (c.srq && !active) {
		struct ibv_srq_init_attr s = {.attr = {.max_wr = c.count + 2, .max_sge = 2}};

		if (!(srq = ibv_create_srq(pd, &s)))
			fail("creating a shared receive queue");
	}
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	if (!(qp = ibv_create_qp(pd, &init)))
		fail("creating a queue pair");
	must("INIT", ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   (is(c.qp, "ud") ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	me.qpn = qp->qp_num;
	me.psn = active && c.psn >= 0 ? c.psn : (getpid() * 2654435761u ^ ms()) & 0xffffff;
	if (is(c.op, "send-inv") && !active) { /* what can be invalidated; its key counts up when it is bound */
		if (!(window = ibv_alloc_mw(pd, IBV_MW_TYPE_2)))
			fail("allocating a memory window");
		me.rkey = ibv_inc_rkey(window->rkey);
	}
}

static void post_receives(void)
{
	for (long s = 0; s < c.count; s++) {
		struct ibv_sge list[] = {
			{(uintptr_t)grh, GRH, 0},
			{(uintptr_t)(memory + s * stride), c.recv >= 0 ? (size_t)c.recv : stride, region->lkey},
		};
		static struct ibv_mr *head;
		struct ibv_recv_wr wr = {.wr_id = s, .sg_list = list + 1, .num_sge = 1}, *bad;

		if (is(c.qp, "ud")) {
			if (!head && !(head = ibv_reg_mr(pd, grh, GRH, IBV_ACCESS_LOCAL_WRITE)))
				fail("registering memory");
			list[0].lkey = head->lkey;
			wr.sg_list = list;
			wr.num_sge = 2;
		}
		must("posting a receive", srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad));
	}
}

static void connect_qp(void)
{
	bool rc = is(c.qp, "rc"), ud = is(c.qp, "ud");
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256, .dest_qp_num = peer.qpn, .rq_psn = peer.psn,
		.max_dest_rd_atomic = c.reads, .min_rnr_timer = c.rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = gid_index, .hop_limit = 64}},
	};

	for (long m = 256; m < c.mtu; m *= 2)
		attr.path_mtu++;
	if (ud && !(ah = ibv_create_ah(pd, &attr.ah_attr)))
		fail("creating an address handle");
	must("RTR", ibv_modify_qp(qp, &attr, IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
				  (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .sq_psn = me.psn, .timeout = c.timeout, .retry_cnt = c.retries,
		.rnr_retry = c.rnr_retries, .max_rd_atomic = c.reads,
	};
	must("RTS", ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
				  (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

/* Waits for one completion; false when none comes in time. */
static bool completion(struct ibv_wc *wc, long patience)
{
	for (long end = ms() + patience;;) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0)
			fail("polling");
		if (n > 0)
			return true;
		if (ms() >= end)
			return false;
		usleep(100);
	}
}

static void show(FILE *f, const struct ibv_wc *wc)
{
	fprintf(f, "wc id=%llu status=%d", (unsigned long long)wc->wr_id, wc->status);
	if (wc->status == IBV_WC_SUCCESS) {
		fprintf(f, " op=%d", wc->opcode);
		if (!active)
			fprintf(f, " len=%u", wc->byte_len - (is(c.qp, "ud") ? GRH : 0));
		if (!active && wc->wc_flags & IBV_WC_WITH_IMM)
			fprintf(f, " imm=%x", ntohl(wc->imm_data));
		if (!active && wc->wc_flags & IBV_WC_WITH_INV)
			fprintf(f, " inv=%s", wc->invalidated_rkey == me.rkey ? "right" : "wrong");
		if (!active && is(c.qp, "ud")) {
			/* the head of an IPv4 packet lies in the last 20 bytes */
			bool right = c.family == 4 ? grh[20] == 0x45 && !memcmp(grh + 32, peer.gid.raw + 12, 4)
						   : grh[0] >> 4 == 6 && !memcmp(grh + 8, peer.gid.raw, 16);
			fprintf(f, " grh=%s", right ? "right" : "wrong");
		}
	}
	fprintf(f, "\n");
}

/* --- the two ends ------------------------------------------------------------- */

static void bind_window(void)
{
	struct ibv_wc wc;
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = window, .rkey = me.rkey, .bind_info = {.mr = region, .addr = me.addr, .length = length,
									 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
	};

	must("binding a memory window", ibv_post_send(qp, &wr, &bad));
	errno = 0;
	if (!completion(&wc, 1000) || wc.status)
		fail("binding a memory window: status %d", wc.status);
}

static void passive(int s)
{
	char buf[1024], *pair, *rest = buf;
	long start, got = 0, end = 0;
	bool posted = false;

	get(buf, sizeof buf);
	if (strncmp(buf, "case ", 5))
		fail("not a case: %s", buf);
	strsep(&rest, " ");
	while ((pair = strsep(&rest, " ")))
		if (*pair)
			set(pair);
	open_device();
	make_memory();
	make_qp();
	if (receives() && !c.recv_delay) {
		post_receives();
		posted = true;
	}
	exchange(true);
	connect_qp();
	if (window)
		bind_window();
	tell("ready\n");
	for (start = ms();;) {
		struct ibv_wc wc;
		struct pollfd p = {s, POLLIN, 0};

		if (receives() && !posted && ms() - start >= c.recv_delay) {
			post_receives();
			posted = true;
		}
		if (completion(&wc, 1)) {
			show(to, &wc);
			got++;
			if (end)
				end = ms() + c.patience;
		}
		if (!end && poll(&p, 1, 0) > 0) {
			if (recv(s, buf, 1, MSG_PEEK) <= 0)
				fail("the active end is gone");
			end = ms() + c.patience;
		}
		/* when all is acknowledged nothing is under way, else it may be */
		if (end && (ms() >= end || got == c.count || (is(c.qp, "rc") && !receives())))
			break;
	}
	get(buf, sizeof buf);
	slots(to);
	tell("bye\n");
}

static void post(long id)
{
	struct ibv_sge data = {(uintptr_t)(memory + id * stride), atomic() ? 8 : c.size, region->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id, .sg_list = &data, .num_sge = data.length ? 1 : 0};
	uint32_t rkey = c.wrong_key ? peer.rkey ^ 0x5500 : peer.rkey;
	static const struct { const char *op; enum ibv_wr_opcode code; } codes[] = {
		{"send", IBV_WR_SEND}, {"send-imm", IBV_WR_SEND_WITH_IMM}, {"send-inv", IBV_WR_SEND_WITH_INV},
		{"write", IBV_WR_RDMA_WRITE}, {"write-imm", IBV_WR_RDMA_WRITE_WITH_IMM}, {"read", IBV_WR_RDMA_READ},
		{"cas", IBV_WR_ATOMIC_CMP_AND_SWP}, {"faa", IBV_WR_ATOMIC_FETCH_AND_ADD}, {0},
	};
	int i = 0;

	while (codes[i].op && !is(codes[i].op, c.op))
		i++;
	if (!codes[i].op)
		fail("no such operation: %s", c.op);
	wr.opcode = codes[i].code;
	wr.send_flags = c.inline_ ? IBV_SEND_INLINE : 0;
	if (strstr(c.op, "-imm"))
		wr.imm_data = htonl(IMM + id);
	if (is(c.op, "send-inv"))
		wr.invalidate_rkey = rkey;
	if (atomic()) {
		wr.wr.atomic.remote_addr = peer.addr + c.offset;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = is(c.op, "faa") ? 1 : id % 2 ? ~after(id) : after(id);
		wr.wr.atomic.swap = after(id + 1);
	} else if (!two_sided()) {
		wr.wr.rdma.remote_addr = peer.addr + id * stride + c.offset;
		wr.wr.rdma.rkey = rkey;
	}
	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer.qpn;
		wr.wr.ud.remote_qkey = c.wrong_qkey ? QKEY ^ 1 : QKEY;
	}
	must("posting", ibv_post_send(qp, &wr, &bad));
}

static void operate(void)
{
	struct ibv_wc wc;
	bool bad = false;

	for (long id = 0, done = 0; id < c.count && !bad; id++) {
		post(id);
		if (c.batch && id < c.count - 1)
			continue;
		for (; done <= id; done++) {
			errno = 0;
			if (!completion(&wc, 60000))
				fail("no completion within a minute");
			show(stdout, &wc);
			bad |= wc.status != IBV_WC_SUCCESS;
		}
	}
}

static void act(int n, char **words)
{
	char buf[1024];

	for (int i = 0; i < n; i++)
		set(words[i]);
	fprintf(to, "case");
	for (int i = 0; i < n; i++)
		fprintf(to, " %s", words[i]);
	tell("\n");
	open_device();
	make_memory();
	make_qp();
	exchange(false);
	connect_qp();
	get(buf, sizeof buf);
	errno = 0;
	if (!is(buf, "ready"))
		fail("not ready: %s", buf);
	operate();
	tell("done\n");
	slots(stdout);
	for (;;) {
		get(buf, sizeof buf);
		if (is(buf, "bye"))
			break;
		printf("peer %s\n", buf);
	}
}

/* --- TCP -------------------------------------------------------------------- */

static void take(int s)
{
	int on = 1;

	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	from = fdopen(s, "r");
	to = fdopen(dup(s), "w");
	if (!from || !to)
		fail("fdopen");
	setvbuf(from, 0, _IONBF, 0); /* what has come is seen by poll */
}

static void serve(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(PORT))};
	int on = 1, l = socket(AF_INET6, SOCK_STREAM, 0);

	signal(SIGCHLD, SIG_IGN);
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l, (struct sockaddr *)&any, sizeof any) || listen(l, 16))
		fail("listening on port " PORT);
	for (;;) {
		int s = accept(l, 0, 0);

		if (s < 0)
			fail("accepting");
		if (!fork()) {
			close(l);
			take(s);
			passive(s);
			exit(0);
		}
		close(s);
	}
}

static int dial(const char *host)
{
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *a;
	int s;

	errno = 0;
	if (getaddrinfo(host, PORT, &hint, &a))
		fail("no such host: %s", host);
	s = socket(a->ai_family, SOCK_STREAM, 0);
	if (connect(s, a->ai_addr, a->ai_addrlen))
		fail("connecting to %s port " PORT, host);
	return s;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: verbs serve | verbs HOST [KEY=VALUE ...]\n");
		return 2;
	}
	if (is(argv[1], "serve"))
		serve();
	active = true;
	take(dial(argv[1]));
	act(argc - 2, argv + 2);
	return 0;
}
