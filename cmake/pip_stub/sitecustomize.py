"""Answers pip's metadata question for a source distribution without running any of its code.

`pip download` of an sdist imports the package's build backend only to learn its name and
dependencies. With this folder on PYTHONPATH every import of that backend (pip names it in an
environment variable of the child process) gives the small stand-in below, which copies the
sdist's own PKG-INFO. So nothing of the sdist runs, and no build dependency is installed.
"""

import importlib.abc
import importlib.util
import os
import shutil
import sys

# The first name is used by pip 23.1 and newer, the second by older ones (Debian 12 has 23.0).
_BACKEND = os.environ.get("_PYPROJECT_HOOKS_BUILD_BACKEND") or os.environ.get("PEP517_BUILD_BACKEND")


def _prepare_metadata(metadata_directory, config_settings=None):
    fields = {}
    with open("PKG-INFO", encoding="utf-8") as info:
        for line in info:
            if not line.strip():
                break
            key, _, value = line.partition(":")
            fields.setdefault(key, value.strip())
    name = "%s-%s.dist-info" % (fields["Name"].replace("-", "_"), fields["Version"])
    os.makedirs(os.path.join(metadata_directory, name))
    shutil.copy("PKG-INFO", os.path.join(metadata_directory, name, "METADATA"))
    return name


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        module = _BACKEND.partition(":")[0]
        if name == module or module.startswith(name + "."):
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def exec_module(self, module):
        module.get_requires_for_build_wheel = lambda config_settings=None: []
        module.prepare_metadata_for_build_wheel = _prepare_metadata
        module.build_wheel = None
        module.__legacy__ = module  # the object part of "setuptools.build_meta:__legacy__"


if _BACKEND:
    sys.meta_path.insert(0, _StandIn())
