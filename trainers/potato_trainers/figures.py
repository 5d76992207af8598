"""A trainer's last word, made what the result event takes: whoever reads that refuses a figure that is no number."""


def figures(metrics, left_out):
    """Name → number or None; the names of values that are neither are added to left_out."""
    kept = {}
    for name, value in metrics.items():
        try:
            kept[str(name)] = None if value is None else _number(value)
        except (TypeError, ValueError, OverflowError):
            left_out.append(str(name))
    return kept


def _number(value):
    if hasattr(value, "item"):  # of numpy or torch
        value = value.item()
    if isinstance(value, str):
        raise TypeError(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53 else float(value)


def texts(values):
    """Labels and notes as texts: an ordinal trainer's labels are numbers."""
    return [value if isinstance(value, str) else str(value) for value in values]
