"""The file of the token that every datagram to `simbridge teleop network` must carry."""

from __future__ import annotations

import stat
import warnings
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.files.reading import read_text

# As many as a datagram has, of which the token is a part.
MAX_TOKEN_FILE_BYTES = 2048
# Whoever may read the file can move the arm; whoever may write it chooses the token.
OTHERS_ACCESS = stat.S_IROTH | stat.S_IWOTH


def read_token(path: str) -> str:
    """Read the token in a file, without white space around it.

    A warning says so if other users may read or write the file.

    Raises:
        InputFileError: The file is missing, a device, a FIFO, larger than MAX_TOKEN_FILE_BYTES or
            not UTF-8; or it holds no token, or more than one line.
    """
    file = Path(path)
    token = read_text(file, MAX_TOKEN_FILE_BYTES).strip()
    if not token:
        reason = "it is empty; write a token into it, or omit --token-file"
        raise InputFileError(file, reason)
    if len(token.splitlines()) > 1:
        raise InputFileError(file, "it has several lines; a token must be one line", line=2)

    if file.stat().st_mode & OTHERS_ACCESS:
        warnings.warn(
            f"{file}: other users of this computer can read or change the token in it. Restrict "
            "it to yourself with chmod 600.",
            stacklevel=2,
        )
    return token
