"""The store: all or nothing, never twice, never trusting what it did not write."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from fabricated import fabricated
from same_run import comparable

from pue.bench.record import Propensities, Record
from pue.bench.spec import SCHEMA, digest
from pue.bench.store import Damaged, Entry, Store, as_text
from pue.errors import Busy
from pue.persistence.sealed import opened, sealed

SPEC = {"schema": SCHEMA, "seed": 0}
BODY = fabricated(SPEC, accuracy=100 * (0.1 + 0.2))
RECORD = Record.from_dict(BODY)


@pytest.fixture
def entry(tmp_path):
    return Entry(tmp_path / "suite" / "run.json", digest(SPEC), Record)


def files(entry):
    return sorted(path.name for path in entry.path.parent.iterdir())


def test_a_record_comes_back_as_it_went_in(entry):
    assert entry.read() is None
    with entry.claim(wait=False):
        entry.write(RECORD)
    assert entry.read() == RECORD
    assert files(entry) == ["run.json"]  # neither lock nor temporary file is left


def test_text_has_a_line_for_every_field():
    assert as_text({"a": 1, "b": [1.5]}).startswith('{\n"a": 1,\n"b": [1.5],\n"digest": "')
    assert len(as_text({"a": 1, "b": [1.5]}).splitlines()) == 5
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_text({"a": float("nan")})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (as_text(BODY)[:-20], "is damaged"),
        ("", "is damaged"),
        ("[1, 2]", "carries no digest"),
        (json.dumps(BODY), "carries no digest"),
        (as_text(BODY).replace("0.49", "0.50", 1), "was altered: its digest is not that of its content"),
        (as_text(BODY).replace("accuracy", "accurate", 1), "was altered"),
        (as_text({**BODY, "history": [3]}), "is not a record"),
        (as_text({**BODY, "spec": {"seed": "x"}, "key": digest({"seed": "x"})}), "is not a record"),
        (as_text({**BODY, "schema": 0}), "not a record of schema 1"),
        (as_text({**BODY, "key": "0"}), "another run"),
        (as_text(fabricated({**SPEC, "seed": 1})), "another run"),
        (as_text({**BODY, "prior": "0.4"}), "is not a record: prior must be a finite number"),
        (as_text({**BODY, "metrics": {}}), "is not a record: metrics needs the field 'accuracy'"),
        (as_text({**BODY, "spec": {**SPEC, "seed": 1}}), "another run"),
        (as_text({**BODY, "spec": None}), "another run"),
    ],
)
def test_what_is_not_the_record_is_not_trusted(entry, text, why):
    entry.path.parent.mkdir()
    entry.path.write_text(text)
    with pytest.raises(Damaged, match=why):
        entry.read()
    assert entry.valid() is None
    with entry.claim(wait=False):
        entry.write(RECORD)
    assert entry.read() == RECORD


def test_bytes_that_are_no_text_are_not_trusted(entry):
    entry.path.parent.mkdir()
    entry.path.write_bytes(b"\xff\xfe{}")
    assert entry.valid() is None


def test_a_write_that_fails_leaves_what_was_there(entry, monkeypatch):
    with entry.claim(wait=False):
        entry.write(RECORD)
        monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            entry.write(replace(RECORD, prior=0.1))
        assert entry.read() == RECORD
    monkeypatch.undo()
    with entry.claim(wait=False):  # and the next holder of the claim removes the half-written file
        assert files(entry) == [".run.lock", "run.json"]


def test_a_claim_excludes_others_and_ends(entry):
    with entry.claim(wait=False), pytest.raises(Busy), entry.claim(wait=False):
        pass
    with entry.claim(wait=False):
        pass
    assert files(entry) == []


def test_whoever_waits_for_a_claim_gets_it_alone(entry):
    inside, most, turns = [0], [0], 8
    barrier = threading.Barrier(turns)

    def turn():
        barrier.wait()
        for _ in range(20):
            with entry.claim(wait=True):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=turn) for _ in range(turns)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert files(entry) == []


def test_sweep_removes_what_nobody_holds(tmp_path):
    store = Store(tmp_path)
    held, left = (Entry(tmp_path / "suite" / f"{name}.json", "", Record) for name in ("held", "left"))
    with held.claim(wait=False):
        for entry in (held, left):
            entry.path.with_name(f".{entry.path.name}.0123.partial").write_text("half a rec")
        left.path.with_name(".left.lock").touch()
        store.sweep("suite")
        assert files(held) == [".held.json.0123.partial", ".held.lock"]
    store.sweep("suite")
    assert files(held) == []


def test_what_is_written_is_what_was_read():
    assert json.loads(as_text(RECORD.to_dict())) == sealed(BODY)
    body = {"schema": SCHEMA, "key": digest(SPEC), "spec": SPEC, "source": "true", "effective_sample_size": 1.5}
    body |= {"share_distance": 0.25, "alarm": None, "seconds": 0.0, "cpu": 0.0, "values": [0.5, 0.25]}
    for stored in (body, {**body, "negative_values": [0.125]}):
        assert json.loads(as_text(Propensities.from_dict(stored).to_dict())) == sealed(stored)


def test_comparable_drops_only_what_may_differ():
    record = fabricated({**SPEC, "propensity": "auto"})
    slower = opened(as_text(record).encode(), "record")
    slower["history"][0]["seconds"] = slower["propensity"]["cpu"] = slower["cost"]["wall_seconds"] = 9.0
    slower["finished"] = slower["versions"] = None
    assert comparable(record) == comparable(slower)
    slower["history"][0]["risk"] = 0.6
    assert comparable(record) != comparable(slower)
