/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a seccomp filter, and hands it to the kernel. */
#include "libconfine/filter_program.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "libconfine/confine.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#define FILTER_ARCH 0 /* no filter */
#endif

#define OF_TEST 3 /* instructions */
#define OF_CONDITION (3 + 2 * OF_TEST)

static void add(struct filter_program *p, uint16_t code, uint8_t if_true,
		uint8_t if_false, uint32_t k)
{
	assert(p->len < FILTER_CODE_MAX);
	p->code[p->len++] =
		(struct sock_filter)BPF_JUMP(code, k, if_true, if_false);
}

static void load(struct filter_program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static void load_number(struct filter_program *p)
{
	load(p, offsetof(struct seccomp_data, nr));
}

/* Go on with the next instruction, or leave out `skip` of them. */
static void unless_equal(struct filter_program *p, uint32_t value, uint8_t skip)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, skip, value);
}

void filter_begin(struct filter_program *p, uint32_t action)
{
	p->len = 0;
	load(p, offsetof(struct seccomp_data, arch));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, FILTER_ARCH);
	filter_end(p, action);
	load_number(p);
}

void filter_end(struct filter_program *p, uint32_t action)
{
	add(p, BPF_RET | BPF_K, 0, 0, action);
}

void filter_add_number(struct filter_program *p, int number, uint32_t action)
{
	unless_equal(p, number, 1);
	filter_end(p, action);
}

void filter_add_bits(struct filter_program *p, uint32_t bits, uint32_t action)
{
	add(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
	filter_end(p, action);
}

/* Leave out what is left of a condition, `skip` instructions, unless it is right. */
static void add_test(struct filter_program *p, const struct filter_test *t, uint8_t skip)
{
	size_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

	load(p, offsetof(struct seccomp_data, args) + 8 * t->argument + low);
	add(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, t->mask);
	unless_equal(p, t->value, skip);
}

void filter_add_condition(struct filter_program *p, const struct filter_condition *c,
			  uint32_t action)
{
	unless_equal(p, c->number, OF_CONDITION - 1);
	add_test(p, &c->tests[0], 1 + OF_TEST);
	add_test(p, &c->tests[1], 1);
	filter_end(p, action);
	load_number(p);
}

int filter_apply(const struct filter_program *p)
{
	const struct sock_fprog program = { p->len, (struct sock_filter *)p->code };

	if (CONFINE_SANITIZED || !FILTER_ARCH)
		return -ENOSYS;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0)
		return 0;
	/* The kernel is built without seccomp: this program is well-formed. */
	return errno == EINVAL ? -ENOSYS : -errno;
}
