"""Where machine code is made and kept while a process runs: LLVM alone; to import numba takes half a second."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import binding  # type: ignore[import-untyped]


@lru_cache(maxsize=1)
def processor() -> tuple[str, str]:
    """This machine's processor, and what it can do."""
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


@lru_cache(maxsize=1)
def target_machine() -> Any:
    """What makes code for this processor, to stay in memory: as numba has it."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    name, features = processor()
    reloc = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=name, features=features, opt=3, reloc=reloc, codemodel="jitdefault", jit=True
    )


def address_of(symbol: str, code: bytes) -> int:
    """Where a function of an object file begins, once the file is loaded; it stays until the process ends."""
    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(symbol))


@lru_cache(maxsize=1)
def _engine() -> Any:
    return binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
