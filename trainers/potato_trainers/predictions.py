"""The predictions file: one line for each item and scheme, streamed, and renamed into place when it is whole."""

import json
import os

from potato_trainers.files import remove

FILE = "predictions.jsonl"


class Predictions:
    """Writes predictions, as a context manager: leaving it well publishes the file, leaving it by an error does not."""

    def __init__(self, workdir):
        self.count = 0
        self.file = ""  # its name once it is published
        self._path = os.path.join(workdir, FILE)
        self._partial = self._path + ".partial"

    def __enter__(self):
        self._out = open(self._partial, "w", encoding="ascii", buffering=1 << 20)
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self._out.flush()
                os.fsync(self._out.fileno())
                self._out.close()
                os.replace(self._partial, self._path)
                self.file = FILE
        finally:
            if not self.file:
                self._discard()

    def _discard(self):
        remove(self._partial)
        try:
            self._out.close()
        except OSError:
            pass  # what cannot be flushed is not wanted any more

    def write(self, instance_id, schema_name, payload):
        """One prediction: payload is {"label" or "labels", "confidence", "scores"}."""
        row = {"instance_id": instance_id, "schema_name": schema_name, "payload": payload}
        row["confidence"] = payload.get("confidence")
        self.write_lines([json.dumps(row, separators=(",", ":"))])

    def write_lines(self, lines):
        """Predictions that are lines of JSON already, for trainers that make many."""
        self.count += len(lines)
        self._out.write("\n".join(lines) + "\n" if lines else "")


class Lines:
    """Makes lines of predictions for one scheme, without a JSON encoder for each: a run may have a million."""

    def __init__(self, schema_name, labels):
        self._labels = [json.dumps(label) for label in labels]
        self._schema = json.dumps(schema_name)
        self._scores = ",".join(label.replace("%", "%%") + ":%.6g" for label in self._labels)

    def of_class(self, instance_id, probabilities):
        """The line of a scheme with one label: the likeliest class, by a list of probabilities in label order."""
        best = max(probabilities)
        label = '"label":' + self._labels[probabilities.index(best)]
        return self._line(instance_id, label, best, probabilities)

    def of_labels(self, instance_id, probabilities, threshold=0.5):
        """The line of a multi-label scheme; its confidence is how sure the decisions are on average."""
        chosen = [label for label, p in zip(self._labels, probabilities) if p >= threshold]
        sure = sum(max(p, 1 - p) for p in probabilities) / len(probabilities)
        return self._line(instance_id, '"labels":[%s]' % ",".join(chosen), sure, probabilities)

    def _line(self, instance_id, answer, confidence, probabilities):
        return (
            '{"instance_id":%s,"schema_name":%s,"payload":{%s,"confidence":%.6g,"scores":{%s}},"confidence":%.6g}'
            % (
                json.dumps(instance_id),
                self._schema,
                answer,
                confidence,
                self._scores % tuple(probabilities),
                confidence,
            )
        )
