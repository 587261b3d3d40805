"""simbridge: how well does an arm track a sampled motion, and where does the error come from?

    import simbridge
    run = simbridge.run("square_tracking")
    print(run.summary["tracking_error"]["position_m"]["rms"])

Names are imported when they are first used, so that `import simbridge` is quick. `__init__.pyi`
lists them.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
