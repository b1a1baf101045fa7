# SPDX-License-Identifier: BSD-3-Clause
"""The Python client without a DVM: time limits, commands, and shares of several DVMs."""

import pathlib
import unittest

from pmi2x_dvm import _encoding, _several


def status(cores, names, queued=0, free=None):
    free = cores if free is None else free
    nodes = [{"name": n, "state": "up", "cores": cores, "free": free} for n in names]
    return {"nodes": nodes, "queued": queued}


class Encoding(unittest.TestCase):
    def test_time_limits_are_those_of_the_command(self):
        for text, number in {
            "90s": 90, "1h30m": 5400, "2d": 172800, "5": 300, "1:30": 90, "1:00:00": 3600,
            "1-2": 93600, "1-0:1": 86460, "soon": "soon", 7: 7, 0.5: 0.5,
        }.items():  # fmt: skip
            self.assertEqual(_encoding.seconds(text), number)

    def test_commands_are_lists(self):
        self.assertEqual(_encoding.command(("a", "b")), ["a", "b"])
        for wrong in "a b", b"a", pathlib.Path("a"), print:
            self.assertRaises(TypeError, _encoding.command, wrong)


class Shares(unittest.TestCase):
    def share(self, tasks, **members):
        statuses = {int(name[1:]): found for name, found in members.items()}
        return _several._share_out(statuses, tasks)

    def test_work_is_shared_largest_first(self):
        tasks = [{"time": 10}, {"time": 10}, {"time": 10}, {"time": "30s"}]
        numbers = self.share(tasks, m1=status(1, "a"), m2=status(1, "b"))
        self.assertEqual(numbers, [2, 2, 2, 1])

    def test_larger_member_gets_more(self):
        numbers = self.share([{}] * 8, m1=status(1, "a"), m2=status(3, "b"))
        self.assertEqual(numbers.count(1), 2)

    def test_task_without_a_limit_counts_like_the_mean(self):
        tasks = [{"time": 20}, {}, {"time": 10}, {"time": 15}]
        numbers = self.share(tasks, m1=status(1, "a"), m2=status(1, "b"))
        self.assertEqual(numbers, [1, 2, 1, 2])

    def test_load_of_a_member_counts(self):
        numbers = self.share([{}] * 2, m1=status(2, "a", queued=4, free=0), m2=status(2, "b"))
        self.assertEqual(numbers, [2, 2])

    def test_named_nodes_choose_the_member(self):
        tasks = [{"on": ["b"]}, {"place": [{"node": "b"}]}, {"on": ["a"]}, {"on": ["other"]}]
        numbers = self.share(tasks, m1=status(4, "a"), m2=status(1, "b"))
        self.assertEqual(numbers, [2, 2, 1, 1])

    def test_task_goes_where_it_fits(self):
        tasks = [{"ranks": 2, "cores": 2}, {"ranks": 2, "nodes": 2}, {"ranks": 99}]
        numbers = self.share(tasks, m1=status(2, "ab"), m2=status(5, "c"))
        self.assertEqual(numbers[1:], [1, 2])

    def test_wrong_limits_are_left_to_the_head(self):
        for time in "soon", None, -1, [3]:
            self.assertEqual(self.share([{"time": time}], m1=status(1, "a")), [1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
