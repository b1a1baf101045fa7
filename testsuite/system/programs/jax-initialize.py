# SPDX-License-Identifier: BSD-3-Clause
"""A program of JAX, without an address: every process learns what the others have."""

import jax

jax.distributed.initialize()
from jax.experimental import multihost_utils  # noqa: E402

mine = jax.process_index()
all_of_them = multihost_utils.process_allgather(jax.numpy.array([mine]))
assert all_of_them.flatten().tolist() == list(range(jax.process_count())), all_of_them
print(f"met {mine} of {jax.process_count()}")
