"""Callbacks that never look at their argument: counters, and those whose printing is switched off.

Such a callback can be called as often as in the first run, with any argument, and does what it did there. Bytecode says
so, or nothing does: whatever is not known counts as a look.
"""

from __future__ import annotations

import dis
from types import CodeType, FunctionType, MethodType
from typing import Any

FRAMES = {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "stack", "breakpoint", "set_trace"}
"""Names by which a function could look at its variables, or at its caller's, in another way."""
VARARGS = 0x04 | 0x08


def is_blind(callback: Any) -> bool:
    """Whether a function of one argument never looks at it, with the values that its closure has now."""
    if not isinstance(callback, FunctionType | MethodType):
        callback = getattr(callback, "__call__", None)
    function = getattr(callback, "__func__", callback)
    if not isinstance(function, FunctionType):
        return False
    code, at = function.__code__, int(isinstance(callback, MethodType))
    if at >= code.co_argcount or code.co_flags & VARARGS or FRAMES & set(code.co_names):
        return False
    cells = zip(code.co_freevars, function.__closure__ or ())
    try:
        constants = {name: cell.cell_contents for name, cell in cells}
    except ValueError:
        return False
    return not _looks(code, code.co_varnames[at], constants)


def _looks(code: CodeType, name: str, constants: dict[str, Any]) -> bool:
    """Whether an instruction that can be reached loads the argument."""
    if name in code.co_cellvars or getattr(code, "co_exceptiontable", b""):
        return True
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "NOT_TAKEN", "TO_BOOL")]
    places = {step.offset: at for at, step in enumerate(steps)}
    stored = {step.argval for step in steps if step.opname in ("STORE_DEREF", "DELETE_DEREF")}
    constants = {name: value for name, value in constants.items() if name not in stored}
    reached, following = set[int](), [0]
    while following:
        at = following.pop()
        if at in reached or at >= len(steps):
            continue
        reached.add(at)
        step = steps[at]
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if "FAST" in step.opname and name in names:
            return True
        is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        jumps = _jumps(steps[at - 1] if at else step, step, constants)
        if jumps is not False and is_jump:
            following.append(places.get(step.argval, places.get(step.argval + 2, len(steps))))
        if jumps is not True and not step.opname.startswith(("RETURN", "RAISE", "RERAISE")):
            following.append(at + 1)
    return False


def _jumps(before: dis.Instruction, step: dis.Instruction, constants: dict[str, Any]) -> bool | None:
    """Whether a jump is taken; None where that is not known."""
    if not step.opname.startswith(("POP_JUMP", "JUMP")):
        return None
    if step.opname.startswith("JUMP") and "IF" not in step.opname:
        return True
    value = constants.get(before.argval) if before.opname in ("LOAD_DEREF", "LOAD_CLOSURE") else None
    if not isinstance(value, bool) or "NONE" in step.opname:
        return None
    return value == step.opname.endswith("TRUE")
