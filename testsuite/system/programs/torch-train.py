# SPDX-License-Identifier: BSD-3-Clause
"""A training script as users write it: no address, port or rank in it.

Argument: "all": init, new_group, all_reduce, barrier; "dies": rank 1 exits before a
barrier of the others.
"""

import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
value = torch.ones(1) * rank
dist.all_reduce(value)
assert value.item() == size * (size - 1) / 2, value
even = dist.new_group(range(0, size, 2))
if rank % 2 == 0:
    value = torch.ones(1)
    dist.all_reduce(value, group=even)
    assert value.item() == (size + 1) // 2, value
if sys.argv[1] == "dies" and rank == 1:
    os._exit(3)
dist.barrier()
print(f"trained {rank} of {size}, {os.environ['LOCAL_RANK']} of {os.environ['LOCAL_WORLD_SIZE']}")
