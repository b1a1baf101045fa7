/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: values of requests, answers and events. An error ends the program, as in
 * client.h.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* The whole number or text of a key; 0 or "" when there is none. */
long long get_number(json_t *object, const char *key);
const char *get_text(json_t *object, const char *key);
/* An array of this many nulls. */
json_t *make_nulls(size_t count);
/* Bytes that came as characters (report_bytes of the head); to be freed. */
char *get_bytes(json_t *data, size_t *len);
/* A word of the user, as JSON; one that is not UTF-8 is wrong usage. what: to name it. */
json_t *user_text(const char *what, const char *word);
/* Bytes of {"ev": "output"}, as text or base64; to be freed. */
char *get_output(json_t *event, size_t *len);
/* An option, or an operand: the number of a task. */
json_int_t get_task(const char *text);
/* For people who write programs. */
void print_json(json_t *value);
