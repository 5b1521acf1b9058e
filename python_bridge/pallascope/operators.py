"""Questions about ATen operators that their schemas answer, and the few that they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .errors import PallascopeError


def operator(target: str) -> torch._ops.OpOverload:
    """The overload that a target such as `aten.add.Tensor` names. Raises PallascopeError (unsupported)."""
    try:
        namespace, name, overload = target.split(".")
        load_namespace(namespace)
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except (ValueError, AttributeError) as error:
        raise PallascopeError(
            "unsupported",
            f"this torch ({torch.__version__}) has no operator '{target}'",
            target,
            "run it with the torch that made the trace, or import the library that defines it",
        ) from error


def load_namespace(namespace: str) -> None:
    """Makes the operators of a namespace known that torch defines only where it needs them (`prims.fma`)."""
    if namespace == "prims":
        import torch._inductor.inductor_prims  # noqa: F401


def is_random(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call draws random numbers: torch's tag, less calls with probability 0 or outside training."""
    if torch.Tag.nondeterministic_seeded not in op.tags:
        return False
    for index, argument in enumerate(op._schema.arguments):
        value = args[index] if index < len(args) else kwargs.get(argument.name, argument.default_value)
        if argument.name in ("dropout_p", "dropout") and value == 0:
            return False
        if argument.name in ("train", "training") and value is False:
            return False
        if argument.name == "p" and "dropout" in op._schema.name and value == 0:
            return False
    return True


# Operators that update running statistics in training and whose schema does not say so.
_NORMALISATIONS = {
    "batch_norm",
    "instance_norm",
    "native_batch_norm",
    "_batch_norm_impl_index",
    "cudnn_batch_norm",
}


def written_arguments(op: torch._ops.OpOverload, node: dict[str, Any]) -> list[Any]:
    """The ARGs that a node writes to: those that the schema marks, and running statistics in training."""

    def given(index: int, name: str) -> Any:
        return node["args"][index] if index < len(node["args"]) else node["kwargs"].get(name)

    arguments = list(enumerate(op._schema.arguments))
    written = [given(i, a.name) for i, a in arguments if a.alias_info is not None and a.alias_info.is_write]
    if op._schema.name.split("::")[-1] in _NORMALISATIONS:
        training = any(
            given(i, a.name) is True for i, a in arguments if a.name in ("training", "use_input_stats")
        )
        if training:
            written += [given(i, a.name) for i, a in arguments if a.name in ("running_mean", "running_var")]
    return [v for w in written if w is not None for v in (w if isinstance(w, list) else [w])]


def is_view(op: torch._ops.OpOverload) -> bool:
    """Whether an output may share the memory of an argument without being written."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns)
