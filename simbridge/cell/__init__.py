"""The cell: how one arm stands, what it carries and what is around it, from a file (docs/cell.md)."""

from simbridge.cell.cell import Cell
from simbridge.cell.reader import load_cell
from simbridge.cell.writer import write_cell

__all__ = ["Cell", "load_cell", "write_cell"]
