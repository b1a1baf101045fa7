/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input of a task, as JSON, which has text only. */
#ifndef PMI2X_DVM_TASK_INPUT_H
#define PMI2X_DVM_TASK_INPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Each byte as the character of its number: a new reference, or NULL: no memory. */
json_t *task_input_text(const char *data, size_t len);
/*
 * The bytes of such a text; *data is to be freed. False: the value is another one, or longer
 * than DVM_INPUT_MAX, or there is no memory.
 */
bool task_input_take(json_t *text, char **data, size_t *len);

#endif
