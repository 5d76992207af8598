"""Targets: what annotators said, read from a row as the text of a class or as several labels."""

from potato_trainers.failures import BundleError

CLASS_KINDS = ("nominal", "ordinal")


def class_of(row, schema):
    """The class of a row for a nominal or ordinal scheme, None when nobody gave one. 4, 4.0 and "4" are one class."""
    value = row.targets.get(schema.name)
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number_text(value)
    raise _unusable(row, schema, "one label")


def labels_of(row, schema):
    """The labels of a row for a multi-label scheme, maybe none of them; None when nobody answered."""
    value = row.targets.get(schema.name)
    if value is None:
        return None
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(label, str) for label in value):
        return list(dict.fromkeys(value))
    raise _unusable(row, schema, "a list of labels")


def number_text(value):
    """The text of an ordinal value: `4` for 4.0, `2.5` for 2.5."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def ordered(labels, schema):
    """Puts observed labels in order: an ordinal scheme's by value, others as the scheme lists them, the rest sorted."""
    place = {label: i for i, label in enumerate(schema.labels)}
    if schema.kind == "ordinal" and not all(label in place for label in labels):
        try:
            return sorted(labels, key=lambda label: (float(label), label))
        except ValueError:
            pass
    return sorted(labels, key=lambda label: (place.get(label, len(place)), label))


def _unusable(row, schema, wanted):
    return BundleError(
        "Item '%s' has no usable target for '%s': %s is expected" % (row.instance_id, schema.name, wanted)
    )
