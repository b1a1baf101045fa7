/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated descriptors: numbers from FIRST_FD on, of which none is used twice in a
 * run, so that the use of one that has been closed is seen. Behind each is a file;
 * what the kinds of files have in common is here, sockets are in sockets.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "testsuite/dst/world.h"

#define FIRST_FD 1000
#define FDS_MAX 65536 /* in a run */

enum file_kind { FILE_SOCKET, FILE_EVENT, FILE_PROCESS, FILE_MEMORY,
		 FILE_EPOLL };

struct socket;
struct epoll_item;

struct file {
	enum file_kind kind;
	unsigned refs;
	bool nonblocking;
	int number;              /* identity */
	struct socket *socket;   /* FILE_SOCKET */
	uint64_t count;          /* FILE_EVENT */
	uint64_t written;        /* FILE_EVENT: how often */
	struct process *process; /* FILE_PROCESS */
	int real_fd;             /* FILE_MEMORY */
	struct epoll_item *items; /* FILE_EPOLL */
};

struct file *file_new(enum file_kind kind);
struct file *file_ref(struct file *f);
void file_unref(struct file *f);
/* The file behind a descriptor; NULL and EBADF. */
struct file *file_find(int fd);
int file_real_fd(const struct file *f);
/* A descriptor of the running process; takes the reference. -1: EMFILE. */
int fd_open(struct file *f);
/* Could it have one? */
bool fd_available(void);

/* EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR. */
uint32_t file_events(struct file *f);
/* Grows whenever something may have changed for who waits for changes. */
uint64_t file_changes(struct file *f);

/* A descriptor of this process is that one's; -1: nothing to do. */
void fd_give(int fd, struct process *to);
void files_close_all(struct process *p);
/* Open ones of all processes. */
unsigned files_open(void);
void files_begin(void);
