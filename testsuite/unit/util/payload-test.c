/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads: sharing, slices that keep their parent, joining. */
#include "unit.h"

#include <errno.h>

#include "libutil/payload.h"

TEST(slices_keep_the_parent_alive)
{
	struct payload *p = payload_copy("0123456789", 10);
	struct payload *s = payload_slice(p, 2, 3);
	struct payload *whole = payload_slice(p, 0, 10);

	assert_ptr_equal(whole, p);
	payload_unref(whole);
	payload_unref(p);
	assert_memory_equal(s->data, "234", 3);
	payload_unref(s);
}

TEST(vectors_join_in_order)
{
	struct payload_vec v, w;
	struct payload *a = payload_copy("ab", 2), *b = payload_copy("c", 1);
	struct payload *empty = payload_copy("", 0), *joined;

	payload_vec_init(&v);
	payload_vec_init(&w);
	payload_vec_add(&v, a);
	payload_vec_add(&v, empty);
	payload_vec_add(&v, b);
	payload_vec_add_all(&w, &v);
	payload_vec_add_all(&w, &v);
	assert_int_equal(v.count, 2);
	assert_int_equal(w.bytes, 6);
	joined = payload_vec_join(&w);
	assert_memory_equal(joined->data, "abcabc", 6);
	payload_unref(joined);
	payload_vec_clear(&v);
	payload_vec_clear(&w);
	assert_int_equal(a->refs, 1);
	payload_unref(a);
	payload_unref(b);
	payload_unref(empty);
}

TEST(virtual_payloads_have_only_a_length)
{
	struct payload_vec v;
	struct payload *a = payload_virtual(5), *s = payload_slice(a, 1, 2);
	struct payload *joined;

	payload_vec_init(&v);
	payload_vec_add(&v, a);
	payload_vec_add(&v, s);
	joined = payload_vec_join(&v);
	assert_int_equal(joined->len, 7);
	assert_null(joined->data);
	assert_null(s->data);
	payload_unref(joined);
	payload_unref(s);
	payload_unref(a);
	payload_vec_clear(&v);
}

TEST(resizing_keeps_the_bytes)
{
	struct payload *a = payload_copy("abc", 3);

	a = payload_resize(a, 1 << 20);
	assert_int_equal(a->len, 1 << 20);
	assert_memory_equal(a->data, "abc", 3);
	a->data[(1 << 20) - 1] = 'z';
	a = payload_resize(a, 2);
	assert_int_equal(a->len, 2);
	assert_memory_equal(a->data, "ab", 2);
	payload_unref(a);
}

TEST(kept_payloads_count_against_the_budget)
{
	struct payload *p, *more, *slice;
	struct payload_vec v;
	struct budget b;
	struct buf buf;

	budget_init(&b, 3000, "an option", NULL);
	buf_init(&buf, SIZE_MAX);
	buf.budget = &b;
	assert_int_equal(buf_append(&buf, "0123456789", 10), 0);
	assert_true(b.used >= 10);
	p = payload_take(&buf);
	assert_int_equal(b.used, 10);
	assert_int_equal(buf.len, 0);
	slice = payload_slice(p, 1, 3);
	payload_unref(p);
	assert_int_equal(b.used, 10); /* the slice keeps it */
	more = payload_new_in(&b, 990);
	assert_int_equal(b.used, 1000);
	more = payload_resize(more, 490);
	assert_int_equal(b.used, 500);
	assert_null(payload_resize(more, 3000));
	assert_int_equal(buf_reserve(&buf, 3000), -ENOMEM);
	assert_true(b.refused);
	payload_vec_init(&v);
	payload_vec_add(&v, slice);
	payload_vec_add(&v, more);
	p = payload_vec_join(&v);
	assert_int_equal(b.used, 500 + 493);
	payload_unref(p);
	payload_vec_clear(&v);
	payload_unref(slice);
	payload_unref(more);
	buf_free(&buf);
	assert_int_equal(b.used, 0);
}
