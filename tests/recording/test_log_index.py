"""The summary and index of a log as other tools read them."""

from __future__ import annotations

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.records import Chunk, DataEnd, MessageIndex
from mcap.stream_reader import StreamReader

from simbridge.recording.log_reader import ChunkDecoder, read_log

TOPICS = 8


@pytest.mark.parametrize("indexed", [True, False])
def test_the_statistics_count_what_was_written(indexed, run_of, write_log, tmp_path):
    samples = run_of(100)
    path = write_log(tmp_path / "log.mcap", samples, indexed=indexed)
    with path.open("rb") as file:
        summary = make_reader(file, validate_crcs=True).get_summary()
    statistics = summary.statistics
    assert (statistics.message_count, statistics.chunk_count) == (100 * TOPICS, 4)
    assert (statistics.schema_count, statistics.channel_count, statistics.metadata_count) == (
        4,
        TOPICS,
        2,
    )
    first, last = (round(sample.stamp * 1e9) for sample in (samples[0], samples[-1]))
    assert (statistics.message_start_time, statistics.message_end_time) == (first, last)
    assert len(summary.chunk_indexes) == (4 if indexed else 0)


def test_every_message_is_where_the_index_points(finished):
    path, samples = finished
    with path.open("rb") as file:
        records = list(StreamReader(file, emit_chunks=True, validate_crcs=True).records)
    indexes = [record for record in records if isinstance(record, MessageIndex)]
    chunks = [record for record in records if isinstance(record, Chunk)]
    assert len(indexes) == TOPICS * len(chunks) and any(
        isinstance(record, DataEnd) for record in records
    )
    times = [time for index in indexes if index.channel_id == 1 for time, _ in index.records]
    assert times == [round(sample.stamp * 1e9) for sample in samples]
    for index in indexes:
        places = np.array([place for _, place in index.records])
        assert len(np.unique(np.diff(places))) <= 1


def test_the_index_finds_the_samples_of_a_time_span(finished):
    path, samples = finished
    begin, end = (round(samples[k].stamp * 1e9) for k in (40, 70))
    with path.open("rb") as file:
        found = [
            m.log_time
            for _, _, m in make_reader(file).iter_messages(
                "/target", starting_at=begin, ending_before=end
            )
        ]
    assert found == [round(sample.stamp * 1e9) for sample in samples[40:70]]


def test_whole_chunks_and_single_messages_are_read_alike(finished, monkeypatch, assert_same):
    path, samples = finished
    decoded = []
    decode = ChunkDecoder.decode
    monkeypatch.setattr(
        ChunkDecoder, "decode", lambda self, content: decoded.append(0) or decode(self, content)
    )
    assert_same(read_log(path), samples)
    # The first of the four chunks begins with the definitions.
    assert len(decoded) == 3
    monkeypatch.setattr(ChunkDecoder, "decode", lambda self, content: None)
    assert_same(read_log(path), samples)
