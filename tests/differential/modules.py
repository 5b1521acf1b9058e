"""Generated modules under test: loaded as files are, with a rule taken out where a test asks whether it is needed."""

from __future__ import annotations

import pytest

import pallascope
from differential import MODES, run
from pallascope.execute import load_module

modes = pytest.mark.parametrize("mode", MODES)


def module_of(function, *args, **replacements):
    """The generated module, with some text replaced; the text must be there."""
    source = pallascope.lower(function, *args).source
    for old, new in replacements.get("replace", ()):
        assert old in source, old
        source = source.replace(old, new)
    return load_module(source, "edges")


def check(function, *args):
    assert not (difference := run(function, args)), difference
