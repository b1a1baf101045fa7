/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The version of what two processes of a step say to each other once their link is
 * proved: frames, messages of collectives, images, control messages and what they
 * carry. Both ends have the same, or each refuses the other by name; the build says
 * nothing about it.
 *
 * wire-test compares the bytes with a reference and fails when they change under the
 * same number. Raise it by one for a change of the bytes or of their meaning.
 */
#pragma once

#define PROTOCOL_VERSION 13

/* "pmi2x build B protocol N", for whoever has the file only. */
extern const char protocol_mark[];
