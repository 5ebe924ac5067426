from __future__ import annotations

import os
from typing import Any

from fake_processes import end, put, stat_line
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.process_tree import (
    Memory,
    ProcessTree,
    below,
    parse_memory,
    parse_pss_bytes,
    parse_stat,
    read_pss_bytes,
)


def tree_of(board: Any, root: int = 10) -> ProcessTree:
    return ProcessTree(root, board.roots.proc, ticks_per_s=100)


def pids(tree: ProcessTree) -> list[int]:
    return [member.pid for member in tree.look().members]


def test_a_tree_is_the_root_and_all_below_it(board: Any) -> None:
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20)):
        put(board, pid, parent)
    assert pids(tree_of(board)) == [10, 11, 12]


def test_a_look_tells_memory_and_cpu_time(board: Any) -> None:
    put(board, 10, 1, rss_kib=200, cpu=150, command="a (b) c")
    (member,) = tree_of(board).look().members
    assert member.command == "a (b) c"
    assert member.memory == Memory(rss_bytes=200 * 1024, vm_hwm_bytes=210 * 1024, swap_bytes=0)
    assert member.cpu_s == 1.5


def test_children_that_come_later_join(board: Any) -> None:
    put(board, 10, 1)
    tree = tree_of(board)
    assert pids(tree) == [10]
    put(board, 12, 11)
    put(board, 11, 10)
    assert pids(tree) == [10, 11, 12]


def test_the_time_of_children_that_were_waited_for_stays_in_the_sum(board: Any) -> None:
    put(board, 10, 1, cpu=100)
    put(board, 11, 10, cpu=300)
    tree = tree_of(board)
    assert tree.look().cpu_s == 4.0
    end(board, 11)
    put(board, 10, 1, cpu=100, reaped=300)
    assert tree.look().cpu_s == 4.0


def test_a_zombies_time_counts_although_it_is_no_member(board: Any) -> None:
    put(board, 10, 1, cpu=100)
    put(board, 11, 10, cpu=300, state="Z", rss_kib=None)
    look = tree_of(board).look()
    assert [member.pid for member in look.members] == [10]
    assert look.cpu_s == 4.0


def test_an_orphan_stays_in_the_tree_that_it_came_from(board: Any) -> None:
    put(board, 10, 1)
    put(board, 11, 10)
    tree = tree_of(board)
    tree.look()
    end(board, 10)
    put(board, 11, 1)
    assert pids(tree) == [11]


def test_another_process_with_the_number_of_an_old_one_is_a_stranger(board: Any) -> None:
    put(board, 10, 1)
    put(board, 11, 10, started=5)
    tree = tree_of(board)
    tree.look()
    put(board, 11, 1, started=900)
    assert pids(tree) == [10]


def test_a_root_whose_number_another_process_got_has_ended_with_all_below_it(board: Any) -> None:
    put(board, 10, 1, started=5)
    tree = tree_of(board)
    tree.look()
    put(board, 10, 1, started=900)
    put(board, 11, 10, started=901)
    assert pids(tree) == []
    assert pids(tree) == []


def test_a_tree_that_has_ended_has_no_members_and_no_time(board: Any) -> None:
    look = tree_of(board).look()
    assert (look.members, look.cpu_s) == ((), None)


def test_a_root_that_only_waits_to_be_reaped_has_ended(board: Any) -> None:
    put(board, 10, 1, state="Z", rss_kib=None, cpu=5)
    assert tree_of(board).look().members == ()


def test_processes_that_are_none_of_the_tree_are_read_once(board: Any) -> None:
    put(board, 10, 1)
    put(board, 20, 1)
    tree = tree_of(board)
    tree.look()
    put(board, 20, 10)  # would join, if it were read again
    assert pids(tree) == [10]


def test_the_number_of_a_stranger_that_is_gone_can_come_back_as_one_of_ours(board: Any) -> None:
    put(board, 10, 1)
    put(board, 20, 1)
    tree = tree_of(board)
    tree.look()
    end(board, 20)
    tree.look()
    put(board, 20, 10)
    assert pids(tree) == [10, 20]


def test_this_very_process_is_seen() -> None:
    (member, *_) = ProcessTree(os.getpid()).look().members
    assert member.pid == os.getpid()
    assert member.memory.vm_hwm_bytes >= member.memory.rss_bytes // 2 > 0


def test_pss_that_cannot_be_read_has_a_reason(board: Any) -> None:
    assert read_pss_bytes(10, board.roots.proc) == (None, "smaps_rollup: No such file or directory")
    put(board, 10, 1, pss_kib=7)
    assert read_pss_bytes(10, board.roots.proc) == (7 * 1024, None)
    board.write("proc/10/smaps_rollup", "")
    assert read_pss_bytes(10, board.roots.proc) == (None, "smaps_rollup tells no Pss")


NUMBERS = st.integers(0, 10**9)


@given(st.text(max_size=15).filter(lambda text: "\n" not in text), NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_stat_line_is_read_whatever_the_command(command: str, parent: int, cpu: int, reaped: int, at: int) -> None:
    stat = parse_stat(stat_line(7, parent, command=command, cpu=cpu, reaped=reaped, started=at))
    assert stat is not None
    assert (stat.command, stat.parent, stat.cpu_ticks, stat.reaped_ticks) == (command, parent, cpu, reaped)
    assert stat.started == at


def test_user_and_system_time_are_both_cpu_time() -> None:
    text = "7 (x) R 1 1 1 0 -1 4 5 0 0 0 1000 200 30 4 20 0 1 0 99 1 1"
    stat = parse_stat(text)
    assert stat is not None
    assert (stat.cpu_ticks, stat.reaped_ticks, stat.started) == (1200, 34, 99)


@given(st.integers(0, 57).map(lambda cut: stat_line(7, 1)[:cut]))
def test_a_stat_line_that_is_cut_off_is_none(text: str) -> None:
    assert parse_stat(text) is None


@given(st.text())
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    parse_stat(text)
    parse_stat(f"1 (x) S {text}")
    parse_memory(text)
    parse_pss_bytes(text)
    parse_pss_bytes(f"Pss: {text}")


def test_pss_is_not_taken_from_a_line_of_a_like_name() -> None:
    assert parse_pss_bytes("Pss_Dirty: 9 kB\nSwapPss: 8 kB\nPss: 3 kB\n") == 3072


@given(st.dictionaries(st.integers(2, 40), st.integers(1, 40), max_size=20))
def test_below_is_what_following_the_parents_finds(parents: dict[int, int]) -> None:
    def leads_to_root(pid: int) -> bool:
        seen: set[int] = set()
        while pid in parents and pid not in seen and pid != 2:
            seen.add(pid)
            pid = parents[pid]
        return pid == 2

    wanted = {pid for pid in parents if leads_to_root(pid)} if 2 in parents else set()
    assert below(2, (), parents) == wanted
