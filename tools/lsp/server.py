"""The language server: answers LSP requests with the help of documents. The only module that uses LSP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace.position_codec import ServerTextPosition

from glow_mlir.tools.command_line import installed_version
from glow_mlir.tools.lsp.document import Document, Problem
from glow_mlir.tools.lsp.index import Statement, Token

DELAY = 0.2
"""Seconds without a change before a text is checked."""

_KINDS = {
    "operation": types.CompletionItemKind.Function,
    "attribute": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.Variable,
    "symbol": types.CompletionItemKind.Reference,
    "block": types.CompletionItemKind.Reference,
}


class GlowLanguageServer(LanguageServer):
    """The open documents in their latest versions, and the pending checks."""

    def __init__(self) -> None:
        super().__init__("glow-lsp", installed_version("glow-mlir"))
        self._documents: dict[str, tuple[str, Document]] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self.is_shut_down = False
        """Whether the editor has sent `shutdown`."""

    def document(self, uri: str) -> Document:
        """The current version of the document."""
        source = self.workspace.get_text_document(uri).source
        known = self._documents.get(uri)
        if known is None or known[0] != source:
            known = self._documents[uri] = source, Document(source)
        return known[1]

    def check_soon(self, uri: str, delay: float = DELAY) -> None:
        """Check a document once it has not changed for a while."""
        self._stop_waiting(uri)
        self._waiting[uri] = asyncio.get_running_loop().call_later(delay, self._check, uri)

    def forget(self, uri: str) -> None:
        """Drop a closed document and its diagnostics."""
        self._stop_waiting(uri)
        self._documents.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _stop_waiting(self, uri: str) -> None:
        if (waiting := self._waiting.pop(uri, None)) is not None:
            waiting.cancel()

    def _check(self, uri: str) -> None:
        self._waiting.pop(uri, None)
        version = self.workspace.get_text_document(uri).version
        found = [self._diagnostic(uri, problem) for problem in self.document(uri).problems()]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def _diagnostic(self, uri: str, problem: Problem) -> types.Diagnostic:
        related = [
            types.DiagnosticRelatedInformation(types.Location(uri, self.range(uri, item.start, item.end)), item.text)
            for item in problem.related
        ]
        return types.Diagnostic(
            self.range(uri, problem.start, problem.end),
            problem.text,
            severity=types.DiagnosticSeverity.Error,
            source="glow-mlir",
            related_information=related or None,
        )

    # LSP counts columns in UTF-16 units, or in the negotiated encoding; documents count characters.

    def offset(self, uri: str, position: types.Position) -> int:
        """The offset of an editor's position."""
        document = self.document(uri)
        decoded = self.workspace.position_codec.position_from_client_units(document.lines, position)
        return document.offset(decoded.line, decoded.character)

    def range(self, uri: str, start: int, end: int) -> types.Range:
        """The range of offsets, as editors count."""
        document, codec = self.document(uri), self.workspace.position_codec
        positions = [ServerTextPosition(*document.location(offset)) for offset in (start, end)]
        return types.Range(*(codec.position_to_client_units(document.lines, decoded) for decoded in positions))

    def token_range(self, uri: str, token: Token) -> types.Range:
        """The range of a token."""
        return self.range(uri, token.start, token.end)


def new_server() -> GlowLanguageServer:
    """Return a server with all request handlers."""
    server = GlowLanguageServer()
    _answer_changes(server)
    _answer_names(server)
    _answer_outlines(server)
    _note_shutdown(server)
    return server


def _note_shutdown(server: GlowLanguageServer) -> None:
    @server.feature(types.SHUTDOWN)
    def shut_down(_: None) -> None:
        server.is_shut_down = True

    del shut_down


def _answer_changes(server: GlowLanguageServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.check_soon(params.text_document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.check_soon(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    del opened, changed, closed  # The server stores them itself.


def _answer_names(server: GlowLanguageServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        found = server.document(uri).hover(server.offset(uri, params.position))
        if found is None:
            return None
        token, text = found
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), server.token_range(uri, token))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        uri = params.text_document.uri
        found = server.document(uri).definition(server.offset(uri, params.position))
        return None if found is None else types.Location(uri, server.token_range(uri, found.token))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        uri = params.text_document.uri
        found = server.document(uri).references(server.offset(uri, params.position))
        wanted = found if params.context.include_declaration else found[1:]
        return [types.Location(uri, server.token_range(uri, token)) for token in wanted]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        uri = params.text_document.uri
        found = server.document(uri).references(server.offset(uri, params.position))
        return [types.DocumentHighlight(server.token_range(uri, token)) for token in found]

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=list("%@^.#!")))
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        uri = params.text_document.uri
        end = server.offset(uri, params.position)
        start, proposals = server.document(uri).proposals(end)
        # Replace the whole name, because editors disagree about word boundaries at `%` and `.`.
        decoded = server.range(uri, start, end)
        return [
            types.CompletionItem(
                item.text,
                kind=_KINDS[item.kind],
                detail=item.detail or None,
                filter_text=item.text,
                text_edit=types.TextEdit(decoded, item.text),
            )
            for item in proposals
        ]

    del hover, definition, references, highlight, completion


def _answer_outlines(server: GlowLanguageServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        uri = params.text_document.uri
        statements = [item for index in server.document(uri).indexes for item in index.statements]
        return outline(server, uri, statements)

    del symbols


def outline(server: GlowLanguageServer, uri: str, statements: Iterable[Statement]) -> list[types.DocumentSymbol]:
    """The functions, and in each the operations with definitions, nested."""
    top: list[types.DocumentSymbol] = []
    inside: dict[Statement, list[types.DocumentSymbol]] = {}
    for item in statements:
        name = item.symbol.text if item.symbol is not None else ", ".join(token.text for token in item.results)
        outer = item.parent
        while outer is not None and outer not in inside:
            outer = outer.parent
        if not name:
            continue
        is_function = item.name.rpartition(".")[2] == "func"
        kind = types.SymbolKind.Function if is_function else types.SymbolKind.Variable
        decoded = server.range(uri, item.start, item.end)
        chosen = item.symbol or item.results[0]
        siblings = top if outer is None else inside[outer]
        children = inside[item] = []
        siblings.append(
            types.DocumentSymbol(name, kind, decoded, server.token_range(uri, chosen), item.name, children=children)
        )
    return top
