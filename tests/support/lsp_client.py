"""An editor for tests: starts `glow-lsp` as a process, and speaks LSP with it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which an answer will not come."""


class Editor:
    """One server process, and the documents that are open in it; columns are those of Python's text."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = LanguageClient("tests", "1")
        self._published: dict[str, asyncio.Queue[types.PublishDiagnosticsParams]] = {}
        self._versions: dict[str, int] = {}

        def keep(params: types.PublishDiagnosticsParams) -> None:
            self._queue(params.uri).put_nowait(params)

        self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(keep)

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "glow_mlir.tools.glow_lsp"]
        self._do(self._client.start_io(*command))
        capabilities = types.ClientCapabilities()
        self.answer = self._do(self._client.initialize_async(types.InitializeParams(capabilities=capabilities)))
        self._client.initialized(types.InitializedParams())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._client.shutdown_async(None))
        self._client.exit(None)
        self._do(self._client.stop())
        self._loop.close()

    def open(self, uri: str, text: str) -> list[types.Diagnostic]:
        """Open a document; what the server says about it."""
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, "mlir", 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return self._diagnostics(uri)

    def change(self, uri: str, *texts: str) -> list[types.Diagnostic]:
        """Replace the text, several times at once; what the server says about the last one."""
        for text in texts:
            self._versions[uri] += 1
            document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
            changes = [types.TextDocumentContentChangeWholeDocument(text)]
            self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, changes))
        return self._diagnostics(uri)

    def close(self, uri: str) -> list[types.Diagnostic]:
        """Close a document; what the server still says about it."""
        document = types.TextDocumentIdentifier(uri)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        return list(self._do(self._queue(uri).get()).diagnostics)

    def ask(self, method: str, uri: str, line: int, column: int) -> Any:
        """The answer to a request about a place, both numbers from 0."""
        document, position = types.TextDocumentIdentifier(uri), types.Position(line, column)
        parameters = {
            types.TEXT_DOCUMENT_HOVER: types.HoverParams(document, position),
            types.TEXT_DOCUMENT_DEFINITION: types.DefinitionParams(document, position),
            types.TEXT_DOCUMENT_COMPLETION: types.CompletionParams(document, position),
            types.TEXT_DOCUMENT_REFERENCES: types.ReferenceParams(types.ReferenceContext(True), document, position),
        }[method]
        return self._do(self._answer(method, parameters))

    def symbols(self, uri: str) -> list[types.DocumentSymbol]:
        """The outline of a document."""
        parameters = types.DocumentSymbolParams(types.TextDocumentIdentifier(uri))
        return list(self._do(self._answer(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, parameters)))

    async def _answer(self, method: str, parameters: Any) -> Any:
        """The answer to a request: pygls wants the loop to run when it is sent."""
        return await self._client.protocol.send_request_async(method, parameters)

    def _diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """What is published for the last version; raises `AssertionError` where one before it was checked, too."""
        params = self._do(self._queue(uri).get())
        assert params.version == self._versions[uri], "a version was checked that had been replaced"
        return list(params.diagnostics)

    def _queue(self, uri: str) -> asyncio.Queue[types.PublishDiagnosticsParams]:
        return self._published.setdefault(uri, asyncio.Queue())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, PATIENCE))
