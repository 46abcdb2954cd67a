"""Notices copies of this process: user code that forks and returns in both.

A copy would continue the campaign beside the original, and fork again. Child processes that never return to
us, such as those of `multiprocessing`, are no business of ours.
"""

import mmap
import os

#: Seen by this process and its copies: a mark, and the id of the process that was copied.
_note: mmap.mmap | None = None
_MARK, _ID = 0, slice(8, 16)
#: Kept by a hook of `os.fork`: asking the system for it in every step would cost some percent.
_own_id = 0


def this_process() -> int:
    """The id of this process, to be taken before user code is called."""
    global _note
    if _note is None:
        _note = mmap.mmap(-1, mmap.PAGESIZE)
        os.register_at_fork(after_in_child=_learn_id)
        _learn_id()
    return _own_id


def _learn_id() -> None:
    global _own_id
    _own_id = os.getpid()


def end_copy_of(process: int) -> None:
    """End this process if user code made it as a copy of `process`."""
    if _own_id != process:
        assert _note is not None
        _note[_ID] = process.to_bytes(8, "little")
        _note[_MARK] = 1
        os._exit(0)


def has_been_copied(process: int) -> bool:
    """True, once, if a copy of this `process` came back from user code."""
    if _note is None or not _note[_MARK] or int.from_bytes(_note[_ID], "little") != process:
        return False
    _note[_MARK] = 0
    return True
