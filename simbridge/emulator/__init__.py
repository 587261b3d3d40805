"""A UR controller for tests: real servers, a real URScript, an arm that moves by documented models.

    from simbridge.emulator import Emulator
    with Emulator("ur10e") as controller:
        ...

The names of this package are imported when they are first used: parts of it must start quickly.
`__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
