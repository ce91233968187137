"""The engine: a request gets the same tokens whatever runs beside it, and no page is lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np
import pytest
from forked import child
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_decoder import PAGE, VOCABULARY, MostLikely, PagedDecoder, continued

from glow_mlir.errors import ExecutionError, InputError, QueueFullError
from glow_mlir.generation.engine import Engine, EngineLimits
from glow_mlir.generation.pages import HeldPages, PagePool
from glow_mlir.generation.request import ContextShift, Request
from glow_mlir.generation.sampler import Choice
from glow_mlir.generation.sampling import Sampling

CONTEXT = 48
END = 5


class Setting:
    """An engine on few pages, and what its requests chose."""

    def __init__(self, sequences: int = 3, rows: int = 9, draft: int = 0, pages: int = 24) -> None:
        self.pool = PagePool(pages, PAGE)
        self.decoder = PagedDecoder(pages)
        limits = EngineLimits(rows, sequences, sequences * (1 + draft), CONTEXT, queue=64)
        self.engine = Engine(self.decoder, MostLikely(), self.pool, limits)
        self.draft = draft

    def request(self, prompt: list[int], count: int, salt: str = "") -> Request:
        """A request that ends with `END`."""

        def sink(choice: Choice) -> str | None:
            return "stop" if choice.token == END else None

        request = Request(prompt, Sampling(temperature=0), count, sink, salt=salt, draft=self.draft)
        self.engine.submit(request)
        return request

    def finish(self, request: Request) -> list[int]:
        """The tokens of a request in the end."""
        for _ in self.engine.drive(request):
            continue
        return request.chosen.tolist()


PROMPTS = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    prompts=st.lists(st.tuples(PROMPTS, st.integers(1, 20), st.sampled_from(["", "other"])), min_size=1, max_size=8),
    sequences=st.integers(1, 4),
    rows=st.integers(12, 20),
    draft=st.sampled_from([0, 2]),
    common=st.integers(0, 3 * PAGE),
    cancelled=st.integers(0, 7),
)
def test_tokens_do_not_depend_on_the_schedule(
    prompts: list[tuple[list[int], int, str]], sequences: int, rows: int, draft: int, common: int, cancelled: int
) -> None:
    setting = Setting(sequences, rows, draft)
    beginning = (list(range(VOCABULARY)) * 2)[:common]
    given_ = [(([*beginning, *prompt])[:28], count, salt) for prompt, count, salt in prompts]
    running = [setting.request(prompt, count, salt) for prompt, count, salt in given_]
    for number, (request, (prompt, count, _)) in enumerate(zip(running, given_, strict=True)):
        wanted = continued(prompt, count, END)
        if number == cancelled:
            setting.engine.cancel(request)
            assert request.chosen.tolist() == wanted[: len(request.chosen)]
            continue
        assert setting.finish(request) == wanted
        assert request.reason == ("stop" if wanted[-1] == END else "length")
    assert setting.pool.available == setting.pool.count
    assert (setting.engine.running, setting.engine.waiting) == (0, 0)


def test_a_repeated_beginning_is_computed_once() -> None:
    setting = Setting(rows=40)
    prompt = [1, 2, 3, 4] * 6 + [7]
    first = setting.finish(setting.request(prompt, 3))
    setting.decoder.calls.clear()
    again = setting.request(prompt, 3)
    assert setting.finish(again) == first
    assert again.reused == 24
    assert setting.decoder.calls[0] == 1
    other = setting.request(prompt, 3, salt="another client")
    assert setting.finish(other) == first
    assert other.reused == 0


def test_pages_of_old_sequences_are_forgotten_last_pages_first() -> None:
    setting = Setting(sequences=1, rows=40, pages=12)
    for number in range(6):
        setting.finish(setting.request([number] * 20, 4))
    assert setting.pool.available == 12
    assert setting.pool.count == 12
    again = setting.request([5] * 20, 1)
    setting.finish(again)
    assert again.reused == 16


def test_long_prompts_are_cut_while_others_go_on() -> None:
    """A continued sequence is in every call, so that it never waits for a whole prompt."""
    setting = Setting(sequences=2, rows=30)
    short, long = setting.request([1], 12), setting.request(list(range(10)) * 3, 4)
    lengths: list[int] = []
    for _ in setting.engine.drive(long):
        lengths.append(short.length)
    assert lengths[0] == 2
    setting.finish(short)
    assert max(setting.decoder.calls) <= 30


def test_drafts_save_calls() -> None:
    """Tokens that were guessed right are not computed one by one."""
    plain, drafting = Setting(sequences=1, rows=12), Setting(sequences=1, rows=12, draft=3)
    prompt = [3, 4, 3, 4, 3, 4]
    wanted = plain.finish(plain.request(prompt, 30))
    assert drafting.finish(drafting.request(prompt, 30)) == wanted
    statistics = drafting.engine.statistics
    assert statistics.accepted_tokens <= statistics.drafted_tokens
    assert len(drafting.decoder.calls) == len(plain.decoder.calls) - statistics.accepted_tokens


def test_threads_wait_for_each_other() -> None:
    setting = Setting(sequences=2)
    prompts = [[number % VOCABULARY, 3] for number in range(8)]
    found: dict[int, list[int]] = {}

    def answer(number: int) -> None:
        found[number] = setting.finish(setting.request(prompts[number], 9))

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: continued(prompt, 9, END) for number, prompt in enumerate(prompts)}


def test_errors_end_the_requests_of_a_call_and_no_others() -> None:
    setting = Setting(sequences=1)
    broken, other = setting.request([1, 2], 3), setting.request([3], 3)
    plain = setting.decoder.logits

    def failing(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        setting.decoder.logits = plain
        raise ValueError("broken")

    setting.decoder.logits = failing
    with pytest.raises(ValueError, match="broken"):
        setting.finish(broken)
    assert broken.reason == "error"
    assert setting.finish(other) == continued([3], 3, END)
    assert setting.pool.available == setting.pool.count


def test_requests_that_do_not_fit_are_refused() -> None:
    setting = Setting()
    with pytest.raises(InputError, match="the prompt is empty"):
        setting.request([], 3)
    with pytest.raises(
        InputError, match="40 tokens of the prompt and 9 new ones are more than the context of 48"
    ) as error:
        setting.request([1] * 40, 9)
    assert error.value.hint == "max_tokens can be 8 at most"
    for _ in range(64):
        setting.request([1], 1)
    with pytest.raises(QueueFullError, match="64 requests wait"):
        setting.request([1], 1)


def test_an_error_of_a_request_ends_it_alone() -> None:
    setting = Setting()

    def broken(choice: Choice) -> str | None:
        raise ValueError("broken sink")

    def masked(chosen: np.ndarray) -> np.ndarray | None:
        raise ValueError("broken mask")

    other = setting.request([1, 2, 3], 8)
    failing = [Request([1, 2], Sampling(temperature=0), 8, broken)]
    failing.append(Request([1, 2], Sampling(temperature=0), 8, lambda _: None, mask=masked))
    for request in failing:
        setting.engine.submit(request)
    for request, name in zip(failing, ("sink", "mask"), strict=True):
        with pytest.raises(ValueError, match=f"broken {name}"):
            setting.finish(request)
        assert request.reason == "error"
    assert setting.finish(other) == continued([1, 2, 3], 8, END)
    assert setting.pool.available == setting.pool.count


def test_an_interrupt_ends_the_request_whose_token_is_chosen_and_no_other() -> None:
    setting = Setting()

    def interrupted(choice: Choice) -> str | None:
        if len(request.chosen) == 3:
            raise KeyboardInterrupt
        return None

    request = Request([1, 2], Sampling(temperature=0), 8, interrupted)
    setting.engine.submit(request)
    other = setting.request([1, 2, 3], 8)
    with pytest.raises(KeyboardInterrupt):
        setting.finish(request)
    with pytest.raises(ExecutionError, match="the choice of a token was interrupted"):
        setting.finish(request)
    assert request.chosen.tolist() == continued([1, 2], 3)
    assert setting.finish(other) == continued([1, 2, 3], 8, END)
    assert setting.pool.available == setting.pool.count


def test_a_salt_may_be_any_string() -> None:
    setting = Setting()
    assert setting.finish(setting.request([1, 2, 3], 4, "\ud800")) == continued([1, 2, 3], 4, END)


def test_requests_that_are_forgotten_or_ended_together_give_their_pages_back() -> None:
    setting = Setting(sequences=2)
    first, second, third = (setting.request([number], 20) for number in (1, 2, 3))
    next(setting.engine.drive(first))
    first.is_cancelled = True
    next(setting.engine.drive(third))
    assert first.reason == "cancelled"
    setting.engine.cancel_all()
    assert {second.reason, third.reason} <= {"cancelled", "stop"}
    assert (setting.engine.running, setting.engine.waiting) == (0, 0)
    assert setting.pool.available == setting.pool.count


@settings(max_examples=40, deadline=None)
@given(prompt=PROMPTS, keep=st.integers(0, CONTEXT - 2), draft=st.sampled_from([0, 3]), other=st.booleans())
def test_a_full_context_forgets_tokens(prompt: list[int], keep: int, draft: int, other: bool) -> None:
    setting = Setting(2, 20, draft)
    shift = ContextShift(CONTEXT, keep)
    setting.engine = Engine(setting.decoder, MostLikely(forgets=True), setting.pool, setting.engine.limits)
    beside = setting.request([1, 2, 3], 40) if other else None
    request = Request(prompt, Sampling(temperature=0), 120, lambda _: None, draft=draft, shift=shift)
    setting.engine.submit(request)
    chosen, window = list[int](), list(prompt)
    while len(chosen) < 120:
        if len(window) == CONTEXT:
            window = window[:keep] + window[keep + shift.dropped :]
        new = continued(window, 1)
        chosen, window = chosen + new, window + new
    assert setting.finish(request) == chosen
    assert len(request.tokens) + request.dropped == len(prompt) + 120
    assert beside is None or setting.finish(beside) == continued([1, 2, 3], 40, END)
    assert (request.reason, setting.pool.available) == ("length", setting.pool.count)


def test_fewer_outputs_than_sequences_are_enough() -> None:
    setting = Setting(sequences=3)
    limits = EngineLimits(9, 3, 1, CONTEXT)
    setting.engine = Engine(setting.decoder, MostLikely(), setting.pool, limits)
    running = [setting.request([number], 5) for number in range(3)]
    assert [setting.finish(each) for each in running] == [continued([number], 5, END) for number in range(3)]


def test_continuations_of_one_prompt_compute_it_once() -> None:
    setting = Setting(sequences=3, rows=12)
    prompt = [1, 2, 3, 4] * 6 + [7]
    running = [setting.request(prompt, 4) for _ in range(3)]
    assert [setting.finish(each) for each in running] == [continued(prompt, 4, END)] * 3
    assert setting.engine.statistics.prompt_tokens == len(prompt) + 2
    assert [each.reused for each in running] == [0, 24, 24]


@pytest.mark.parametrize("is_computing", [True, False])
def test_a_child_process_computes_though_a_thread_of_its_parent_did(is_computing: bool) -> None:
    """A request of the parent ends in the child if nobody knows how far it came, and goes on otherwise."""
    setting, begun, is_over = Setting(), threading.Event(), threading.Event()
    plain = setting.decoder.logits

    def waiting(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        begun.set()
        is_over.wait()
        return plain(inputs)

    def answers() -> bool:
        setting.decoder.logits = plain
        if is_computing:
            assert (first.reason, setting.pool.available) == ("cancelled", setting.pool.count)
        else:
            assert setting.finish(first) == continued([1, 2], 20, END)
        assert setting.finish(setting.request([3], 4)) == continued([3], 4, END)
        return setting.pool.available == setting.pool.count

    first = setting.request([1, 2], 20)
    next(setting.engine.drive(first))
    setting.decoder.logits = waiting
    thread = threading.Thread(target=setting.finish, args=(first,))
    if is_computing:
        thread.start()
        begun.wait()
    assert child(answers)
    is_over.set()
    if is_computing:
        thread.join()
    assert setting.finish(first) == continued([1, 2], 20, END)


def test_an_interrupt_in_front_of_a_turn_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting()
    request = setting.request([1, 2, 3], 4)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(setting.engine._turn, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), setting.engine.turn():
            pass
    assert setting.engine._turns_wanted == 0
    assert setting.finish(request)


def test_pages_that_were_taken_before_others_lacked_are_given_back() -> None:
    pool = PagePool(3, PAGE)
    held, pages = HeldPages(pool), list[int]()
    with pytest.raises(ExecutionError):
        held.grow(pages, 4 * PAGE)
    held.leave(pages)
    held.collect()
    assert (held.count, pool.available) == (0, 3)
