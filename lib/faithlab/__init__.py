"""Explanation faithfulness on one engine: masks, outputs and metrics that agree on what they measure."""

from importlib.util import find_spec


def require(extra: str, *modules: str) -> None:
    """See that what a part of the library needs besides the metrics is installed.

    Args:
        extra: the name under which it is installed.
        modules: that it needs.

    Raises:
        ModuleNotFoundError: one is missing; the message says how to install it.
    """
    for module in modules:
        if find_spec(module) is None:
            raise ModuleNotFoundError(
                f"this part of faithlab needs {module}, which is not installed: pip install 'faithlab[{extra}]'",
                name=module,
            )
