"""A child process for one request at a time, with what it writes to stderr meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from glow_mlir.support.child_process import ChildProcess


class LoggedProcess(ChildProcess):
    """A process that answers one request after another; what it writes to stderr meanwhile is kept."""

    def __init__(self, served: str) -> None:
        """Raises `NoProcessError` if no process can be started."""
        self._errors = tempfile.TemporaryFile()
        self._messages = ""
        super().__init__(served, error_output=self._errors)

    def exchange(self, request: Sequence[bytes], count: int) -> list[bytes]:
        """
        Send a request and wait for an answer of that many parts, or for cancellation; there are fewer if the process
        ends. Raises `CancelledError`.
        """
        self._errors.seek(0)
        self._errors.truncate()
        try:
            self.send(*request)
            return self.receive(count)
        except (BrokenPipeError, ConnectionResetError):
            return []
        except BaseException:
            # An unread answer would be taken for the answer to the next request.
            self.close()
            raise

    def messages(self) -> str:
        """What it wrote to stderr since the last request."""
        if not self._errors.closed:
            self._errors.seek(0)
            self._messages = self._errors.read().decode(errors="replace")
        return self._messages

    def close(self, patience: float = 0.0) -> str:
        """End it as `ChildProcess.close` does; the messages remain."""
        end = super().close(patience)
        self.messages()
        self._errors.close()
        return end
