"""Persistent dicts and lists: they are stored in a file, used in place, and changed in transactions; a program that is killed
loses nothing that was acknowledged (`docs/nvheap.md`).

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/todo"
>>> todo = open(path)                          # created if it does not exist
>>> todo["tasks"] = [{"text": "water the plants", "done": False}]
>>> todo["tasks"].append({"text": "feed the cat", "done": False})
>>> with todo.transaction():                   # both or none; durable when the block ends
...     todo["tasks"][0]["done"] = True
...     todo["count"] = len(todo["tasks"])
>>> todo.copy()
{'count': 2, 'tasks': [{'done': True, 'text': 'water the plants'}, {'done': False, 'text': 'feed the cat'}]}

An exception undoes a transaction:

>>> with todo.transaction():
...     todo["tasks"].clear()
...     raise RuntimeError("changed my mind")
Traceback (most recent call last):
...
RuntimeError: changed my mind
>>> len(todo["tasks"])
2

What is stored is copied into the heap, but for objects that are in it already: those are shared.

>>> first = todo["tasks"][0]
>>> todo["urgent"] = first
>>> first["done"] = False
>>> todo["urgent"]["done"]
False
>>> todo.close()
>>> with open(path) as todo:                   # as after a crash
...     todo["urgent"]["text"], sorted(todo)
('water the plants', ['count', 'tasks', 'urgent'])

Values are `None`, truth values, integers of any size, floats, texts, bytes, lists, and dicts with texts as keys, which are kept in
their order. Outside a transaction each operation is one of its own. One transaction at a time changes a heap: other threads wait.
`nvlab heap dump FILE` shows what is in it without this program, `nvlab heap check FILE` looks for damage.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, overload

from . import _nvlab
from ._errors import InputError

__all__ = ["Heap", "PersistentDict", "PersistentList", "Value", "open"]

#: What a heap holds.
Value: TypeAlias = "None | bool | int | float | str | bytes | PersistentDict | PersistentList"

_NONE, _BOOL, _INTEGER, _LONG, _FLOAT, _TEXT, _BYTES, _LIST, _DICT, _LIST_AT, _DICT_AT = range(11)
_INTEGERS = range(-(2**63), 2**63)


class _Shared:
    """Common to all objects of a heap."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        self.inner = _nvlab.Heap(path, bytes_max)
        self.lock = threading.RLock()
        self.depth = 0

    def apply(self, what: str, at: int, key: int | str | None = None, value: object = None) -> Any:
        with self.lock:
            return self.inner.apply((what, at, key, value), self.depth > 0)

    def encode(self, value: object) -> tuple[int, object]:
        """A value in the form for the extension."""
        match value:
            case None:
                return _NONE, None
            case bool():
                return _BOOL, value
            case int():
                return (_INTEGER, value) if value in _INTEGERS else (_LONG, str(value))
            case float():
                return _FLOAT, value
            case str():
                return _TEXT, value
            case bytes() | bytearray() | memoryview():
                return _BYTES, bytes(value)
            case _Object() if value._shared is self:
                return (_DICT_AT if isinstance(value, PersistentDict) else _LIST_AT), value._id
            case _Object():
                return self.encode(value.copy())
            case Mapping():
                wrong = [key for key in value if not isinstance(key, str)]
                if wrong:
                    raise TypeError(f"keys of a persistent dict are texts, not {type(wrong[0]).__name__}")
                return _DICT, [(key, self.encode(item)) for key, item in value.items()]
            case list() | tuple():
                return _LIST, [self.encode(item) for item in value]
        raise TypeError(f"a heap holds None, truth values, numbers, texts, bytes, lists and dicts, not {type(value).__name__}")

    def decode(self, data: tuple[int, Any]) -> Value:
        """A value of the heap."""
        kind, value = data
        if kind == _LIST_AT:
            return PersistentList(self, value)
        if kind == _DICT_AT:
            return PersistentDict(self, value)
        return int(value) if kind == _LONG else value


def _plain(data: tuple[int, Any]) -> Any:
    """A deep copy of a value, outside the heap."""
    kind, value = data
    if kind == _LIST:
        return [_plain(item) for item in value]
    if kind == _DICT:
        return {key: _plain(item) for key, item in value}
    return int(value) if kind == _LONG else value


class _Object:
    """A list or dict in a heap."""

    __slots__ = ("_shared", "_id", "__weakref__")

    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared = shared
        self._id = number
        if number:
            weakref.finalize(self, shared.inner.release, number).atexit = False

    def _apply(self, what: str, key: int | str | None = None, value: object = None) -> Any:
        return self._shared.apply(what, self._id, key, value)

    def __len__(self) -> int:
        count: int = self._apply("len")
        return count

    def clear(self) -> None:
        """Removes everything in it."""
        self._apply("clear")

    def copy(self) -> Any:
        """A deep copy, as ordinary lists and dicts."""
        return _plain(self._apply("copy"))

    def __eq__(self, other: object) -> bool:
        """Equal to a list or dict with the same contents."""
        return bool(self.copy() == (other.copy() if isinstance(other, _Object) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.copy()!r})"


class PersistentDict(_Object, MutableMapping[str, Any]):
    """A dict in a heap. Its keys are texts, in sorted order."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        found = self._apply("get", _name(key))
        if found is False:
            raise KeyError(key)
        return self._shared.decode(found)

    def __setitem__(self, key: str, value: object) -> None:
        self._apply("set", _name(key), self._shared.encode(value))

    def __delitem__(self, key: str) -> None:
        if not self._apply("delete", _name(key)):
            raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        names: list[str] = self._apply("names")
        return iter(names)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._apply("get", key) is not False


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys of a persistent dict are texts, not {type(key).__name__}")
    return key


class PersistentList(_Object, MutableSequence[Any]):
    """A list in a heap. Inserting or removing in the middle moves the elements after it."""

    __slots__ = ()

    def _index(self, index: int) -> int:
        index = index + len(self) if index < 0 else index
        if index < 0:
            raise IndexError("list index out of range")
        return index

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        found = self._apply("get", self._index(index))
        if found is False:
            raise IndexError("list index out of range")
        return self._shared.decode(found)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            raise InputError("slices of a persistent list are read, not written")
        if not self._apply("set", self._index(index), self._shared.encode(value)):
            raise IndexError("list index out of range")

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, slice):
            raise InputError("slices of a persistent list are read, not removed")
        if not self._apply("delete", self._index(index)):
            raise IndexError("list index out of range")

    def insert(self, index: int, value: object) -> None:
        """Inserts a value before an index."""
        with self._shared.lock:
            count = len(self)
            place = max(0, index + count) if index < 0 else min(index, count)
            self._apply("insert", place, self._shared.encode(value))

    def append(self, value: object) -> None:
        """Appends a value."""
        with self._shared.lock:
            self._apply("insert", len(self), self._shared.encode(value))

    def extend(self, values: Iterable[object]) -> None:
        """Appends values, all in one transaction."""
        with _transaction(self._shared):
            for value in values:
                self.append(value)


@contextmanager
def _transaction(shared: _Shared) -> Iterator[None]:
    with shared.lock:
        if shared.depth:
            # Part of the one that is under way.
            yield
            return
        shared.inner.begin()
        shared.depth += 1
        try:
            yield
        except BaseException:
            shared.inner.abort()
            raise
        else:
            shared.inner.commit()
        finally:
            shared.depth -= 1


class Heap(PersistentDict):
    """An open heap: its root, a dict. One program at a time has it."""

    __slots__ = ()

    def __init__(self, path: Path, bytes_max: int) -> None:
        super().__init__(_Shared(path, bytes_max), 0)

    @contextmanager
    def transaction(self) -> Iterator[Heap]:
        """Changes of the heap, all of them or none: durable when the block ends, undone by an exception. Inside another one it is
        part of that."""
        with _transaction(self._shared):
            yield self

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return self._shared.inner.stat()[0]

    @property
    def replayed(self) -> int:
        """Records that were replayed when it was opened: 0 after it was closed in order."""
        return self._shared.inner.stat()[2]

    def close(self) -> None:
        """Writes all changes home and closes the file; the heap's objects can no longer be used."""
        with self._shared.lock:
            self._shared.inner.close()

    def __enter__(self) -> Heap:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open(path: str | os.PathLike[str], *, bytes_max: int = 64 << 30) -> Heap:
    """Opens the heap of a file, which is created if it does not exist. `bytes_max` is what a new one may grow to; it takes address
    space only."""
    return Heap(Path(path), bytes_max)
