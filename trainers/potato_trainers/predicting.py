"""Predicting the held-out and unlabelled items in batches, whatever the model: a million rows never sit in memory."""

import itertools
from collections import Counter

from potato_trainers.events import progress
from potato_trainers.predictions import Lines
from potato_trainers.targets import class_of, labels_of


def predict(job, labelled, answer, batch):
    """Writes the predictions file; yields progress.

    answer(texts) returns, for each of the schemes in labelled, a list of probabilities for each text, in the order of
    the scheme's labels. Returns for each scheme a Counter of held-out labels that no training item has.
    """
    splits = job.bundle.predicted()
    total = sum(split.n or 0 for split in splits)
    writers = [_Writer(each) for each in labelled]
    made = 0
    yield progress("predict", 0, total)
    with job.predictions() as out:
        for split in splits:
            rows = job.bundle.rows(split.name)
            while True:
                part = list(itertools.islice(rows, batch))
                if not part:
                    break
                columns = []
                for writer, probabilities in zip(writers, answer([row.text for row in part])):
                    columns.append([writer.line(row.instance_id, p) for row, p in zip(part, probabilities)])
                    if not split.predict_only:
                        writer.note_unseen(part)
                out.write_lines(list(itertools.chain.from_iterable(zip(*columns))))
                made += len(part)
                yield progress("predict", made, max(total, made))
    return [writer.unseen for writer in writers]


class _Writer:
    def __init__(self, labelled):
        self._schema, self._labels = labelled.schema, set(labelled.labels)
        self._multilabel = labelled.multilabel
        lines = Lines(labelled.schema.name, labelled.labels)
        self.line = lines.of_labels if labelled.multilabel else lines.of_class
        self.unseen = Counter()

    def note_unseen(self, rows):
        for row in rows:
            target = labels_of(row, self._schema) if self._multilabel else class_of(row, self._schema)
            for label in (target or []) if self._multilabel else [target]:
                if label is not None and label not in self._labels:
                    self.unseen[label] += 1
