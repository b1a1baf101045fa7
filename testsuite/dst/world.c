/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes, tasks and time of the simulated machine. */
#include "testsuite/dst/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "testsuite/dst/client.h"
#include "testsuite/dst/files.h"
#include "testsuite/dst/memory.h"
#include "testsuite/dst/threads.h"

#define STACK_BYTES ((size_t)512 << 10)
#define TASKS_MAX 512
#define EVENTS_MAX 65536
#define FIRST_PID 5000001 /* no real process has such a number */

struct hardship hardship;
char replay_options[64];

struct task {
	ucontext_t context;
	void *stack;
	struct process *process;
	void *(*fn)(void *arg);
	void *arg;
	bool ended;
	bool forgotten;
	bool gone; /* its process was killed */
	bool (*ready)(void *arg); /* NULL: it can run */
	void *ready_arg;
	uint64_t deadline;
	bool timed_out;
};

struct event {
	uint64_t when;
	uint64_t number;
	void (*fn)(void *a, void *b); /* NULL: only a moment */
	void *a, *b;
};

static struct {
	uint64_t seed;
	uint64_t random[2];
	bool verbose;
	bool failed;
	uint64_t hash;
	uint64_t now;
	struct event *events; /* a heap */
	size_t nevents;
	uint64_t event_number;
	struct task *tasks[TASKS_MAX];
	unsigned ntasks;
	struct task *running;
	ucontext_t scheduler;
	struct process machine;
	struct process *processes;
	struct process *current;
	int next_pid;
} world;

static void *free_stacks[TASKS_MAX];
static unsigned nfree_stacks;

/* ---- what is drawn ---- */

static uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t draw(void)
{
	return mix(&world.random[0]);
}

uint64_t draw_below(uint64_t n)
{
	return draw() % n;
}

bool draw_once_in(uint64_t n)
{
	return n && draw_below(n) == 0;
}

uint64_t draw_between(uint64_t low, uint64_t high)
{
	uint64_t a = draw_below(high - low + 1), b = draw_below(high - low + 1);

	return low + (a < b ? a : b);
}

/* ---- trace and verdict ---- */

static void hash_number(uint64_t v)
{
	world.hash = (world.hash ^ v) * 0x100000001b3ull;
	world.hash ^= world.hash >> 29;
}

static void print_where(void)
{
	printf("%12.6f %-10s ", world.now / 1e9, world.current->name);
}

void trace(const char *what, int64_t a, int64_t b)
{
	hash_number(world.now);
	hash_number(world.current->pid);
	for (const char *p = what; *p; p++)
		hash_number(*p);
	hash_number(a);
	hash_number(b);
	if (!world.verbose)
		return;
	print_where();
	printf("%s %lld %lld\n", what, (long long)a, (long long)b);
}

void trace_text(const char *fmt, ...)
{
	va_list args;

	if (!world.verbose)
		return;
	print_where();
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

uint64_t trace_hash(void)
{
	return world.hash;
}

bool is_verbose(void)
{
	return world.verbose;
}

void failed(const char *fmt, ...)
{
	va_list args;

	if (world.failed && !world.verbose)
		return;
	world.failed = true;
	printf("testsuite/dst/simulate --seed %llu%s # at %.6f s, %s: ",
	       (unsigned long long)world.seed, replay_options,
	       world.now / 1e9, world.current->name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

bool has_failed(void)
{
	return world.failed;
}

/* ---- time ---- */

uint64_t now(void)
{
	return world.now;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->when != b->when ? a->when < b->when : a->number < b->number;
}

static void add_event(struct event e)
{
	size_t i = world.nevents++;

	if (world.nevents > EVENTS_MAX)
		abort();
	e.number = world.event_number++;
	while (i && is_before(&e, &world.events[(i - 1) / 2])) {
		world.events[i] = world.events[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	world.events[i] = e;
}

static struct event take_event(void)
{
	struct event first = world.events[0];
	struct event last = world.events[--world.nevents];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < world.nevents) {
		if (child + 1 < world.nevents &&
		    is_before(&world.events[child + 1], &world.events[child]))
			child++;
		if (!is_before(&world.events[child], &last))
			break;
		world.events[i] = world.events[child];
		i = child;
	}
	world.events[i] = last;
	return first;
}

void at_time(uint64_t when, void (*fn)(void *a, void *b), void *a, void *b)
{
	add_event((struct event){ .when = when, .fn = fn, .a = a, .b = b });
}

void wake_at(uint64_t when)
{
	add_event((struct event){ .when = when });
}

/* ---- processes ---- */

struct process *process_new(const char *name, uint32_t host)
{
	struct process *p = __real_calloc(1, sizeof(*p));

	p->pid = world.next_pid++;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->host = host;
	p->next = world.processes;
	world.processes = p;
	return p;
}

struct process *process_first(void)
{
	return world.processes;
}

struct process *process_by_pid(int pid)
{
	struct process *p = world.processes;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

struct process *process_current(void)
{
	return world.current;
}

struct process *process_switch(struct process *p)
{
	struct process *before = world.current;

	if (p != before)
		client_switch(before, p);
	world.current = p;
	return before;
}

void process_kill(struct process *p, int status)
{
	struct process *before;

	if (p->dead)
		return;
	trace("dies", p->pid, status);
	p->dead = true;
	p->status = status;
	for (unsigned i = 0; i < world.ntasks; i++)
		if (world.tasks[i]->process == p)
			world.tasks[i]->gone = true;
	before = process_switch(p);
	threads_forget(p);
	files_close_all(p);
	p->session = NULL;
	process_switch(before == p ? &world.machine : before);
	p->session = NULL;
	memory_free_all(p);
	if (world.running && world.running->process == p)
		setcontext(&world.scheduler);
}

/* ---- tasks ---- */

static void run_task(void)
{
	struct task *t = world.running;

	t->fn(t->arg);
	t->ended = true;
	setcontext(&world.scheduler);
}

static void *take_stack(void)
{
	if (nfree_stacks)
		return free_stacks[--nfree_stacks];
	return __real_mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
}

struct task *task_start(struct process *p, void *(*fn)(void *arg), void *arg)
{
	struct task *t = __real_calloc(1, sizeof(*t));

	if (world.ntasks == TASKS_MAX)
		abort();
	t->process = p;
	t->fn = fn;
	t->arg = arg;
	t->deadline = NEVER;
	t->stack = take_stack();
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK_BYTES;
	t->context.uc_link = NULL;
	makecontext(&t->context, run_task, 0);
	if (!p->main)
		p->main = t;
	p->tasks++;
	world.tasks[world.ntasks++] = t;
	return t;
}

struct task *task_current(void)
{
	return world.running;
}

bool task_has_ended(const struct task *t)
{
	return t->ended;
}

void task_forget(struct task *t)
{
	t->forgotten = true;
}

static void give_up_turn(struct task *t)
{
	struct process *p = world.current; /* maybe it acts for another one */

	swapcontext(&t->context, &world.scheduler);
	process_switch(p);
}

bool task_wait(bool (*ready)(void *arg), void *arg, uint64_t deadline)
{
	struct task *t = world.running;

	if (ready(arg))
		return true;
	if (deadline <= world.now)
		return false;
	t->ready = ready;
	t->ready_arg = arg;
	t->deadline = deadline;
	t->timed_out = false;
	give_up_turn(t);
	return !t->timed_out;
}

static bool never(void *arg)
{
	return false;
}

void task_sleep(uint64_t ns)
{
	task_wait(never, NULL, world.now + ns);
}

void task_maybe_switch(void)
{
	if (world.running && draw_once_in(hardship.switches))
		give_up_turn(world.running);
}

/* ---- scheduler ---- */

static bool can_run(struct task *t)
{
	if (t->gone || t->process->stopped_until > world.now)
		return false;
	if (t->ended)
		return false;
	if (!t->ready)
		return true;
	if (t->ready(t->ready_arg)) {
		t->timed_out = false;
		return true;
	}
	t->timed_out = t->deadline <= world.now;
	return t->timed_out;
}

static void run(struct task *t)
{
	static ucontext_t *volatile to;

	t->ready = NULL;
	t->deadline = NEVER;
	world.running = t;
	process_switch(t->process);
	to = &t->context;
	swapcontext(&world.scheduler, to);
	world.running = NULL;
	process_switch(&world.machine);
}

static void drop_ended(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < world.ntasks; i++) {
		struct task *t = world.tasks[i];

		if (t->stack && (t->gone || t->ended)) {
			free_stacks[nfree_stacks++] = t->stack;
			t->stack = NULL;
			t->process->tasks--;
		}
		if (t->gone || (t->ended && t->forgotten))
			__real_free(t);
		else
			world.tasks[kept++] = t;
	}
	world.ntasks = kept;
}

static bool any_alive(void)
{
	for (unsigned i = 0; i < world.ntasks; i++)
		if (!world.tasks[i]->ended)
			return true;
	return false;
}

/* The first that can run, from a random one on. */
static bool run_one(void)
{
	unsigned first = world.ntasks ? draw_below(world.ntasks) : 0;

	for (unsigned i = 0; i < world.ntasks; i++) {
		struct task *t = world.tasks[(first + i) % world.ntasks];

		if (can_run(t)) {
			run(t);
			if (t->ended || t->gone)
				drop_ended();
			return true;
		}
	}
	return false;
}

static uint64_t next_moment(void)
{
	uint64_t next = world.nevents ? world.events[0].when : NEVER;

	for (unsigned i = 0; i < world.ntasks; i++) {
		const struct task *t = world.tasks[i];
		uint64_t when = t->deadline;

		if (t->ended || t->gone)
			continue;
		if (t->process->stopped_until > world.now)
			when = t->process->stopped_until;
		if (when < next)
			next = when;
	}
	return next;
}

static void run_events(void)
{
	while (world.nevents && world.events[0].when <= world.now) {
		struct event e = take_event();

		if (e.fn)
			e.fn(e.a, e.b);
	}
	drop_ended();
}

bool world_run(uint64_t limit)
{
	uint64_t next;

	while (!world.failed) {
		if (run_one())
			continue;
		if (!any_alive())
			return true;
		next = next_moment();
		if (next == NEVER || next > limit)
			return false;
		if (next > world.now)
			world.now = next;
		run_events();
	}
	return false;
}

void world_explain(void)
{
	for (unsigned i = 0; i < world.ntasks; i++)
		if (!world.tasks[i]->ended)
			printf("  a task of %s waits\n",
			       world.tasks[i]->process->name);
}

/* ---- life ---- */

void world_begin(uint64_t seed, bool verbose)
{
	struct event *events = world.events;

	memset(&world, 0, sizeof(world));
	world.events = events ? events :
				__real_calloc(EVENTS_MAX, sizeof(*events));
	world.seed = seed;
	world.random[0] = seed * 0x2545f4914f6cdd1dull + 1;
	world.verbose = verbose;
	world.hash = 0xcbf29ce484222325ull;
	world.now = 1000 * SEC;
	world.next_pid = FIRST_PID;
	snprintf(world.machine.name, sizeof(world.machine.name), "machine");
	world.machine.pid = FIRST_PID - 1;
	world.current = &world.machine;
	memset(&hardship, 0, sizeof(hardship));
}

void world_end(void)
{
	struct process *p;

	for (p = world.processes; p; p = p->next)
		process_kill(p, 0);
	for (unsigned i = 0; i < world.ntasks; i++)
		world.tasks[i]->gone = true;
	drop_ended();
	while ((p = world.processes)) {
		world.processes = p->next;
		__real_free(p);
	}
}
