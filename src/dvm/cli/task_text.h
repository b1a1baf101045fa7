/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: tasks as text for people. Bytes that would change a terminal, and those that
 * are not UTF-8, are written as \xNN.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* For text of other origin than text_of_output or JSON, which may not be UTF-8. */
void print_text(FILE *to, const char *text, size_t len);
/* At most `max` characters, and "..." if there are more. */
void print_shortened(FILE *to, const char *text, size_t max);
/* Bytes of the head as text: those that are not UTF-8 are written as \xNN. */
json_t *text_of_output(json_t *bytes);
/* Print them as text. */
void print_bytes(FILE *to, json_t *bytes);
/* Replace "out", "err" and "why" of a task by text. */
void make_texts(json_t *task);

/* How a task has failed: "killed by signal 11 (Segmentation fault)", "exit status 1". */
void print_how(FILE *to, json_t *task);
/* The reason and the last line of error output, each after ": "; nothing without them. */
void print_reason(FILE *to, json_t *task);
/*
 * The command of a description that has "argv", to be freed; NULL: it has none. A line of
 * a file is that line.
 */
char *command_of(json_t *task);
/* Print it, and its line, shortened; nothing without "argv". */
void print_command(json_t *task);
/* The task's line in the file of a batch; 0: none. */
size_t line_of_task(json_t *task);
