"""Writes a small GGUF that says given texts, each chosen by the last token of the prompt.

A llama of one layer whose attention and feed-forward weights are all zero sees nothing but the present token: its
output matrix is a table of successors. Each text is cut into pieces that occur only once, so that every piece has one
successor, and the last one is followed by the end of the turn. A control token for each text leads to its first piece;
the chat template of this folder puts that token at the end of the prompt.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType
from numpy.typing import NDArray

CONTEXT_LENGTH = 32_768
_PIECE_LENGTH = 4
_PIECES_OF_LONG_TEXT = 200
_CALL_END = re.compile(r"\}\s*\}(?=[;,\n\]])")


class _Vocabulary:
    """Tokens and their kinds, with the successor of each."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.kinds: list[TokenType] = []
        self.successor: dict[int, int] = {}
        self.pieces: set[str] = set()
        self.unknown = self.add("<unk>", TokenType.UNKNOWN)
        self.begin = self.add("<s>", TokenType.CONTROL)
        self.end_of_turn = self.add("<|eot_id|>", TokenType.CONTROL)
        self.add("<|start_header_id|>", TokenType.CONTROL)
        self.add("<|end_header_id|>", TokenType.CONTROL)
        for byte in range(256):  # any prompt can be tokenized
            self.add(f"<0x{byte:02X}>", TokenType.BYTE)

    def add(self, token: str, kind: TokenType) -> int:
        self.tokens.append(token)
        self.kinds.append(kind)
        return len(self.tokens) - 1

    def add_text(self, selector: str, text: str, *, is_merged: bool) -> int:
        """Add a text and the control token that leads to it; returns its first piece."""
        pieces = self._cut(text, is_merged)
        chain = [self._add_piece(piece) for piece in pieces]
        previous = self.add(selector, TokenType.CONTROL)
        for token in [*chain, self.end_of_turn]:
            self.successor[previous] = token
            previous = token
        return chain[0]

    def _add_piece(self, piece: str) -> int:
        if "▁" in piece:  # in a normal token it is a space
            return self.add(piece, TokenType.USER_DEFINED)
        return self.add(piece.replace(" ", "▁"), TokenType.NORMAL)

    def _cut(self, text: str, is_merged: bool) -> list[str]:
        """Cut a text into pieces that are new to the whole vocabulary."""
        length = max(_PIECE_LENGTH, len(text) // _PIECES_OF_LONG_TEXT)
        ends = [] if is_merged else [end.end() for end in _CALL_END.finditer(text)]
        ends.append(len(text))
        pieces: list[str] = []
        start = 0
        while start < len(text):
            limit = next(end for end in ends if end > start)
            end = min(start + length, limit)
            while self._is_known(text[start:end]) and end < limit:
                end += 1
            piece = text[start:end]
            while self._is_known(piece):  # nothing new up to the limit: it joins the piece before
                piece = pieces.pop() + piece
            pieces.append(piece)
            self.pieces.add(piece.replace(" ", "▁"))
            start = end
        return pieces

    def _is_known(self, piece: str) -> bool:
        return piece.replace(" ", "▁") in self.pieces


def write_model(
    path: Path,
    scripts: Mapping[str, Sequence[str] | Mapping[int, str]],
    default: str | None,
    merged: Collection[str] = (),
    markers: Collection[str] = (),
) -> dict[str, int]:
    """Write a model that knows `scripts`: the texts of each, by the number of tool results since the user spoke.

    The script named `default` is said where the prompt asks for none. Without a default nothing is likelier than
    anything else there, so that a request can pick a script by a bias on its first token. `markers` are control tokens
    that lead nowhere; a script that holds the same characters is said in other tokens. A piece ends where a call does,
    but for the scripts in `merged`: there the end of a call can be one token with what follows it.

    Returns the first token of each script.
    """
    vocabulary = _Vocabulary()
    for marker in markers:
        vocabulary.add(marker, TokenType.CONTROL)
        vocabulary.pieces.add(marker.replace(" ", "▁"))
    firsts: dict[str, int] = {}
    for name, texts in scripts.items():
        for step, text in texts.items() if isinstance(texts, Mapping) else enumerate(texts):
            first = vocabulary.add_text(f"<|say:{name}:{step}|>", text, is_merged=name in merged)
            firsts.setdefault(name, first)
    _write_gguf(path, vocabulary, None if default is None else firsts[default])
    return firsts


def _write_gguf(path: Path, vocabulary: _Vocabulary, default_piece: int | None) -> None:
    count = len(vocabulary.tokens)
    width = (count + 31) // 32 * 32
    feed_forward = 32
    writer = GGUFWriter(path, "llama")
    writer.add_name("scripted")
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(feed_forward)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(width)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(count)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_scores([-1e9] * count)
    writer.add_token_types(vocabulary.kinds)
    writer.add_bos_token_id(vocabulary.begin)
    writer.add_eos_token_id(vocabulary.end_of_turn)
    writer.add_unk_token_id(vocabulary.unknown)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)

    embedding = _zeros(count, width)
    embedding[np.arange(count), np.arange(count)] = 1.0
    output = _zeros(count, width)
    for token in range(count):
        successor = vocabulary.successor.get(token, default_piece)
        if successor is not None:
            output[successor, token] = 1.0
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(width, np.float32))
    writer.add_tensor("blk.0.ffn_norm.weight", np.ones(width, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", _zeros(width, width))
    writer.add_tensor("blk.0.ffn_gate.weight", _zeros(feed_forward, width))
    writer.add_tensor("blk.0.ffn_up.weight", _zeros(feed_forward, width))
    writer.add_tensor("blk.0.ffn_down.weight", _zeros(width, feed_forward))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)
