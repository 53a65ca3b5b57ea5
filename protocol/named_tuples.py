"""Named tuples whose classes are made cheaply: a start makes hundreds of them, and uses few.

``NamedTuple`` stands in for ``typing.NamedTuple``, and is that one for type checkers. A class is made in a
seventh of the time, and gets its constructor at the first call. Generic ones need ``typing``'s.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    #: Makes a named tuple in half the time of calling its class.
    _new = tuple.__new__
    _field = type(namedtuple("_Sample", "field").field)

    class _CheapType(type):
        def __new__(cls, name, bases, body):
            if getattr(bases[0], "_fields", ()):
                # a class derived from a named tuple has its fields, and may have more in its __dict__
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            body["_field_defaults"] = {field: body[field] for field in fields if field in body}
            body["_fields"] = body["__match_args__"] = fields
            body.update((field, _field(nth, None)) for nth, field in enumerate(fields))
            return super().__new__(cls, name, bases, {**body, "__slots__": ()})

    class NamedTuple(tuple, metaclass=_CheapType):
        """Base class of named tuples: fields are annotated in the class, with their defaults."""

        def __new__(cls, *values, **named):
            made = namedtuple(cls.__name__, cls._fields, defaults=cls._field_defaults.values()).__new__
            cls.__new__ = staticmethod(made)
            return made(cls, *values, **named)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"

        def __getnewargs__(self):
            return tuple(self)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        @classmethod
        def _make(cls, values):
            made = _new(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **named):
            made = _new(type(self), map(named.pop, self._fields, self))
            if named:
                raise TypeError(f"unexpected keyword argument {next(iter(named))!r}")
            return made
