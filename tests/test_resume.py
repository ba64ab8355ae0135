"""A run that was stopped and gone on with is the run that was never stopped."""

import json
import os
from dataclasses import replace

import pytest
import torch

from metalib.resume import load_state, save_state, start, write_whole
from metalib.settings import Settings
from metalib.tables import save_csv
from metalib.train import Diverged, complete, train

KINDS = [
    Settings(outer_steps=12, inner_steps=3),
    Settings(outer_steps=12, problem="classifier", rate="per tensor", inner_steps=2, carry=True),
    Settings(outer_steps=12, problem="classifier", rate="from loss", inner_steps=5, dtype="float64", seed=3),
    Settings(outer_steps=12, version="first_order", inner_steps=2, carry=True, meta_rate=0.01),
    Settings(outer_steps=12, version="data_write", inner_steps=2),
]


def timeless(records):
    return [replace(record, seconds=0.0) for record in records]


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: f"{settings.problem} {settings.version}")
@pytest.mark.parametrize("stop_after", [1, 5, 11])
def test_stopped_saved_and_gone_on_with_gives_the_same_records(settings, stop_after, tmp_path):
    state, records = start(settings), []
    for record in train(settings, state):
        records.append(record)
        if len(records) == stop_after:
            break
    save_state(state, tmp_path / "run.json")
    loaded = load_state(tmp_path / "run.json")
    assert loaded.settings == settings and loaded.step == stop_after
    records += train(loaded.settings, loaded)
    assert timeless(records) == timeless(complete(settings).records)


def test_it_can_go_on_for_longer_than_it_was_meant_to():
    short, long = Settings(outer_steps=4), Settings(outer_steps=9)
    state = start(short)
    records = [*train(short, state), *train(long, state)]
    assert timeless(records) == timeless(complete(long).records)
    assert list(train(short, state)) == []


@pytest.mark.parametrize("when", [0, 3])
def test_an_interrupt_in_the_middle_of_a_step_leaves_a_whole_number_of_steps(when, monkeypatch):
    settings, calls = Settings(outer_steps=6, problem="classifier", carry=True), []
    import metalib.train

    real = metalib.train.outer_step

    def interrupted(*args):
        calls.append(1)
        if len(calls) == when + 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(metalib.train, "outer_step", interrupted)
    state, records = start(settings), []
    with pytest.raises(KeyboardInterrupt):
        for record in train(settings, state):
            records.append(record)
    assert state.step == len(records) == when
    records += train(settings, state)
    assert timeless(records) == timeless(complete(settings).records)


def test_a_run_that_diverged_diverges_again_at_the_same_step():
    settings = Settings(inner_steps=20, start_rate=1e6)
    state, told = start(settings), []
    for _ in range(2):
        with pytest.raises(Diverged) as caught:
            list(train(settings, state))
        told.append(str(caught.value))
    assert told[0] == told[1] and state.step == 0


def test_the_state_of_another_run_is_refused():
    state = start(Settings())
    with pytest.raises(ValueError, match="of a run with inner_steps 1, not 2: go on with state.settings"):
        list(train(Settings(inner_steps=2), state))


def saved(tmp_path, **changes):
    path = tmp_path / "run.json"
    save_state(start(Settings(problem="classifier")), path)
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in content.items() if value != "left out"}))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "other"}, "is JSON, but not a run"),
        ({"step": -1}, "step is -1"),
        ({"step": "left out"}, "holds a run that cannot be read"),
        ({"numbers": {"rate": 1.0}}, "numbers are given for rate, not for log_rate"),
        ({"memory": []}, "memory has another length"),
        ({"weights": {"w": [1.0]}}, "the weights are not those of classifier"),
        ({"generator": "zz"}, "holds a run that cannot be read"),
        ({"generator": "00"}, "holds a run that cannot be read"),
        ({"settings": {"problem": "chess"}}, "unknown problem 'chess'"),
        ({"settings": {"steps": 3}}, "holds a run that cannot be read"),
    ],
)
def test_a_file_that_is_no_run_gets_a_sentence_and_is_left_alone(changes, said, tmp_path):
    path = saved(tmp_path, **changes)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="run.json") as caught:
        load_state(path)
    assert said in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"\x80\x04\x95pickle", b"[1, 2", b"null", b'{"a": 1}', "é".encode("latin-1")])
def test_foreign_and_half_written_files_get_a_sentence(content, tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="give a file that save_state wrote"):
        load_state(path)


def test_half_of_a_saved_run_gets_a_sentence(tmp_path):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cut off in the middle"):
        load_state(path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "runs.csv"
    save_csv([complete(Settings(outer_steps=2))], path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="cannot be written: No space left on device"):
        save_csv([complete(Settings(outer_steps=3))], path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written_gets_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot be written: No such file or directory. Choose another place"):
        write_whole(tmp_path / "nowhere" / "run.json", "{}")
    with pytest.raises(OSError, match="cannot be written"):
        write_whole(tmp_path, "{}")


def test_no_pickle_anywhere():
    """Reading a file runs no code: nothing here unpickles."""
    from pathlib import Path

    import metalib

    for path in Path(metalib.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "pickle" not in text and "torch.load" not in text and "torch.save" not in text, path.name


def test_the_numbers_come_back_to_the_last_digit(tmp_path):
    settings = Settings(problem="classifier", outer_steps=3, carry=True)
    state = start(settings)
    list(train(settings, state))
    save_state(state, tmp_path / "run.json")
    loaded = load_state(tmp_path / "run.json")
    assert loaded.numbers == state.numbers and loaded.memory == state.memory
    assert all(torch.equal(loaded.weights[name], w) for name, w in state.weights.items())
    assert torch.equal(loaded.generator.get_state(), state.generator.get_state())
