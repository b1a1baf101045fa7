/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the links between neighbours: see wireup.c for how. */
#pragma once

#include "agent/peers/connect_back.h"
#include "agent/peers/neighbour.h"

/* Takes over the listening socket (-1: none). 0 or a negative errno. */
int wireup_open(struct peers *p, int listener);
/* Start to make the link with this neighbour, if nobody has; calls nothing. */
void wireup_start(struct neighbour *n);
/* True: one of the two sides has tried to connect. */
bool wireup_tried(const struct neighbour *n);
/*
 * " (port N): why there is no link yet, and what to do", for people; "": nobody has tried.
 */
void wireup_explain(const struct neighbour *n, char *out, size_t size);
/* A look-up of its address has ended. */
void wireup_found(struct neighbour *n);
/* A neighbour says where it listens. */
void wireup_called(struct peers *p, const struct whereabouts *w);

/* Events of a connection that is not (yet) the link: as of struct link_ops. */
void wireup_proved(struct conn *c);
int wireup_frame(struct conn *c, enum frame_type type,
		 const struct payload *body);
void wireup_ended(struct conn *c, int error);
