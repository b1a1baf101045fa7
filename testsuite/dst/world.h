/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated machine: processes, tasks (threads) and time. Everything runs in
 * one real thread. A task runs until it blocks in a simulated system call, or one of
 * these draws that another one is to have its turn. Time stands still while tasks
 * can run; then it jumps to the next event.
 *
 * All that is drawn comes from the seed, so a seed is one run.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define US 1000ull /* in ns */
#define MS (1000 * US)
#define SEC (1000 * MS)
#define NEVER UINT64_MAX

/* ---- what is drawn ---- */

/* The next random number; below n (> 0); true once in n (0: never). */
uint64_t draw(void);
uint64_t draw_below(uint64_t n);
bool draw_once_in(uint64_t n);
/* Mostly near the lower end. */
uint64_t draw_between(uint64_t low, uint64_t high);

/* How hard the simulated kernel makes it; 1 in N calls, 0: never. */
struct hardship {
	unsigned switches;   /* another task has its turn in a system call */
	unsigned short_io;   /* less is read from TCP, or written, than could be */
	unsigned interrupts; /* EINTR */
	unsigned aborted;    /* accept: ECONNABORTED */
	unsigned no_memory;  /* malloc in an agent, or its supervisor, fails, */
	unsigned spared;     /* ... but not the next ones: what fails has to say so */
	uint64_t latency;    /* ns of a message between nodes, at most */
	unsigned stalls;     /* a message takes up to `stall` ns */
	uint64_t stall;
	uint32_t buffer;     /* bytes in a socket */
	bool no_peerpidfd;   /* an older kernel */
};
extern struct hardship hardship;

/* ---- processes ---- */

struct session;

struct process {
	int pid;
	char name[24];
	uint32_t host;       /* an address of its own */
	bool dead;
	int status;          /* as waitpid tells */
	uint64_t stopped_until;
	uint64_t starved_until; /* no new descriptor until then */
	unsigned fds;        /* open */
	unsigned tasks;      /* tasks that have not ended */
	struct task *main;   /* the first of them */
	struct block *blocks; /* allocated */
	struct mapping *mappings;
	const char *(*getenv)(struct process *p, const char *name);
	void *arg;           /* of its creator */
	/* The client library's own state, while another process runs. */
	struct session *session;
	pthread_mutex_t life;
	struct process *next;
};

/* Lives until world_end. */
struct process *process_new(const char *name, uint32_t host);
/* All of them, newest first. */
struct process *process_first(void);
struct process *process_by_pid(int pid);
/*
 * Kill a process: its tasks never run again; descriptors are closed, memory is freed. Does
 * not return if the process is that of the running task.
 */
void process_kill(struct process *p, int status);
/* The process of the task that runs; the machine's own outside of tasks. */
struct process *process_current(void);
/* Let a call count as another process's; returns the one before. */
struct process *process_switch(struct process *p);

/* ---- tasks ---- */

struct task;

struct task *task_start(struct process *p, void *(*fn)(void *arg), void *arg);
/* NULL outside of tasks. */
struct task *task_current(void);
bool task_has_ended(const struct task *t);
/* Nobody will ask about it any more. */
void task_forget(struct task *t);
/*
 * Wait until ready(arg) is true, or `deadline`. True: it is ready. Without a
 * deadline (NEVER) it is never false.
 */
bool task_wait(bool (*ready)(void *arg), void *arg, uint64_t deadline);
void task_sleep(uint64_t ns);
/* In each system call: another task may have its turn. */
void task_maybe_switch(void);

/* ---- time ---- */

uint64_t now(void);
/* Call fn(a, b) at this time, outside of tasks. */
void at_time(uint64_t when, void (*fn)(void *a, void *b), void *a, void *b);
/* Time must not jump over this moment. */
void wake_at(uint64_t when);

/* ---- life ---- */

void world_begin(uint64_t seed, bool verbose);
/* Until no task is left (true) or it is `limit`. */
bool world_run(uint64_t limit);
void world_end(void);
/* Prints what the tasks that are left wait for, on stdout. */
void world_explain(void);

/* ---- trace and verdict ---- */

/* Goes into the hash of the run, and is printed with --verbose. */
void trace(const char *what, int64_t a, int64_t b);
/* As above, for words, which are not hashed. */
void trace_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t trace_hash(void);
bool is_verbose(void);
/* Options of the program, for the line that replays a run; with a space before each. */
extern char replay_options[64];
/* The run has shown a fault: says so once, with what replays it. */
void failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool has_failed(void);
