"""Explanation faithfulness on one engine: masks, outputs and metrics that agree on what they measure."""

from importlib.util import find_spec


def require(extra: str, *modules: str) -> None:
    """Check that the modules which a part of the library needs beside the base dependencies are installed.

    Args:
        extra: the extra, or extras, that installs them.
        *modules: their names.

    Raises:
        ModuleNotFoundError: one is missing; the message says how to install it.
    """
    for name in (module for module in modules if find_spec(module) is None):
        raise ModuleNotFoundError(f"needs {name}, which is not installed: pip install 'faithlab[{extra}]'", name=name)
