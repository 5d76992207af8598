"""The labelled training rows of a run, by scheme: what can be trained on them, and if nothing can, why."""

from collections import Counter

from potato_trainers.failures import ValidationFailed
from potato_trainers.targets import CLASS_KINDS, class_of, labels_of, ordered


class Labelled:
    """The training rows that one scheme has targets for, as numbers: `codes` holds the class of each row, or the list
    of its labels; `index` says which of the texts each is about."""

    def __init__(self, schema, index, answers):
        self.schema = schema
        self.index = index
        self.multilabel = schema.kind not in CLASS_KINDS
        counted = Counter(label for answer in answers for label in (answer if self.multilabel else [answer]))
        self.labels = ordered(counted, schema)
        self.counts = {label: counted[label] for label in self.labels}
        code = {label: i for i, label in enumerate(self.labels)}
        if self.multilabel:
            self.codes = [[code[label] for label in answer] for answer in answers]
        else:
            self.codes = [code[answer] for answer in answers]

    def __len__(self):
        return len(self.index)

    def refusal(self, needed, counts):
        """Why this cannot be trained on, as a sentence; empty when it can. counts are the splits' sizes in words."""
        name, n = self.schema.name, len(self)
        if n < needed:
            return "%d labelled items are needed in the training split, there are %d for '%s' (%s)" % (
                needed,
                n,
                name,
                counts,
            )
        if self.multilabel:
            if not self.labels:
                return (
                    "All %d training items of '%s' have an empty list of labels; two different answers are needed"
                    % (n, name)
                )
            if all(count == n for count in self.counts.values()):
                return "All %d training items of '%s' have the same labels (%s); two different answers are needed" % (
                    n,
                    name,
                    _quoted(self.labels),
                )
        elif len(self.labels) < 2:
            return "The training split of '%s' has only one label ('%s', %d items); two are needed" % (
                name,
                self.labels[0],
                n,
            )
        return ""

    def held_out(self, rows):
        """(texts, codes) of held-out rows that have a target; a class that is not trained gets the code -1."""
        code = {label: i for i, label in enumerate(self.labels)}
        texts, codes = [], []
        for row in rows:
            answer = labels_of(row, self.schema) if self.multilabel else class_of(row, self.schema)
            if answer is not None:
                texts.append(row.text)
                codes.append(
                    [code[label] for label in answer if label in code] if self.multilabel else code.get(answer, -1)
                )
        return texts, codes


def read(bundle, schemas):
    """Reads the training split: (rows read, texts that have a target, a Labelled for each scheme)."""
    texts, n = [], 0
    found = [([], []) for _ in schemas]
    readers = [class_of if s.kind in CLASS_KINDS else labels_of for s in schemas]
    for row in bundle.rows("train"):
        n += 1
        kept = False
        for schema, reader, (index, answers) in zip(schemas, readers, found):
            answer = reader(row, schema)
            if answer is not None:
                index.append(len(texts))
                answers.append(answer)
                kept = True
        if kept:
            texts.append(row.text)
    return n, texts, [Labelled(schema, *pair) for schema, pair in zip(schemas, found)]


def trainable(found, needed, counts):
    """The schemes that can be trained, and a sentence for each that cannot. It is an error when none can."""
    refusals = [(labelled, labelled.refusal(needed, counts)) for labelled in found]
    able = [labelled for labelled, refusal in refusals if not refusal]
    said = [refusal for _, refusal in refusals if refusal]
    if not able:
        raise ValidationFailed("; ".join(said), "label more items, or lower min_instances")
    return able, ["Not trained: " + refusal for refusal in said]


def _quoted(labels):
    shown = ", ".join("'%s'" % label for label in labels[:5])
    return shown + (" and %d more" % (len(labels) - 5) if len(labels) > 5 else "")
