"""Heads as JSON, for `explain`."""

import json
from typing import Any, Union


def _text(value: Union[str, bytes]) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def head_json(cluster: Union[str, None], head: Union[dict[str, Any], None]) -> str:
    known: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
    for name, value in (head or {}).items():
        if name == "headers":
            pairs = value.items() if hasattr(value, "items") else value
            known[name] = [[_text(one), _text(other)] for one, other in pairs]
        elif name == "key":
            known[name] = _text(value)
        elif value is not None:
            known[name] = dict(value) if hasattr(value, "items") else value
    return json.dumps(known, allow_nan=False)
