/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes of nodes below on their way to srun: which of them the first node passes on. */
#include "unit.h"

#include <stdio.h>

#include "agent/peers/peers.h"
#include "agent/step/control_path.h"
#include "agent/step/srun_link.h"
#include "libcoll/tree.h"
#include "libpmi/control.h"

#define NOTES_MAX 16 /* notes that a node passes on */
#define NODES 8

static struct tree_place place;
static unsigned sent; /* to srun */

/* ---- in place of the other files ---- */

int srun_link_send(struct service *s, struct payload *frame)
{
	sent++;
	return 0;
}

void srun_link_frame_lost(struct service *s, const void *data, size_t len)
{
}

void srun_link_connect(struct service *s)
{
}

bool srun_link_is_up(const struct service *s)
{
	return true;
}

void srun_link_ask(struct service *s, const void *data, size_t len)
{
}

void srun_link_release(struct service *s)
{
}

bool srun_link_is_flushed(const struct service *s)
{
	return true;
}

bool peers_has_parent(const struct peers *p)
{
	return false;
}

void peers_send_control(struct peers *p, uint32_t to, struct payload *frame)
{
}

uint64_t peers_sent_up(const struct peers *p)
{
	return 0;
}

bool peers_asks(const struct peers *p)
{
	return false;
}

void peers_answer(struct peers *p)
{
}

void peers_srun_up(struct peers *p)
{
}

void peers_begin(struct peers *p)
{
}

int pmi_server_control_input(struct pmi_server *s, const void *data, size_t len)
{
	return 0;
}

const struct tree_place *pmi_server_place(const struct pmi_server *s)
{
	return &place;
}

/* ---- notes ---- */

static void note_from(struct service *s, uint32_t node, const char *text)
{
	struct control_msg msg = {
		.type = CONTROL_NOTE, .origin = node, .text = (char *)text,
	};
	struct payload *frame;
	struct buf b;

	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, &msg), 0);
	frame = payload_take(&b);
	assert_int_equal(control_path_from_child(s, tree_next_hop(&place, node), false, frame),
			 0);
	payload_unref(frame);
}

static void open_path(struct service *s, struct node *n)
{
	*n = (struct node){ 0 };
	*s = (struct service){ .node = n };
	place = tree_place(NODES, 2, 0);
	assert_int_equal(loop_create(&n->loop), 0);
	assert_int_equal(control_path_open(s), 0);
	sent = 0;
}

static void close_path(struct service *s)
{
	control_path_close(s);
	loop_run(s->node->loop);
	loop_destroy(s->node->loop);
	control_path_free(s);
}

TEST(note_of_several_nodes_is_passed_on_once)
{
	struct service s;
	struct node n;

	open_path(&s, &n);
	for (uint32_t node = 1; node < NODES; node++)
		note_from(&s, node, "a program was refused");
	assert_int_equal(sent, 1);
	note_from(&s, 1, "another program was refused");
	assert_int_equal(sent, 2);
	close_path(&s);
}

TEST(notes_that_are_passed_on_are_bounded)
{
	struct service s;
	struct node n;
	char text[32];

	open_path(&s, &n);
	for (int i = 0; i < 2 * NOTES_MAX; i++) {
		snprintf(text, sizeof(text), "note %d", i);
		note_from(&s, 1 + i % (NODES - 1), text);
	}
	assert_int_equal(sent, NOTES_MAX);
	close_path(&s);
}
