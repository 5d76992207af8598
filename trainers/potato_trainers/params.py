"""Parameters against a trainer's schema: the part of JSON Schema that trainers use.

The server checks the same rules before a run starts; testdata/params.json holds both to the same answers.
"""

_WORDS = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def check(schema, given):
    """Returns the parameters with their defaults, and the problems: [{path, message[, suggestion]}]."""
    properties = schema.get("properties") or {}
    values = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
    problems = []
    for name in sorted(given):
        rule = properties.get(name)
        if rule is None:
            if schema.get("additionalProperties") is False:
                problems.append(_unknown(name, properties))
            else:
                values[name] = given[name]
            continue
        value, wrong = _check_value(rule, given[name])
        if wrong:
            problems.append({"path": "params." + name, "message": "%s %s" % (name, wrong)})
        values[name] = value
    for name in sorted(schema.get("required") or []):
        if name not in values:
            problems.append({"path": "params." + name, "message": "%s is missing" % name})
    return values, problems


def _check_value(rule, value):
    types = rule.get("type")
    types = [types] if isinstance(types, str) else types
    if types:
        fitting = [t for t in types if _is(t, value)]
        if not fitting:
            return value, "must be %s" % " or ".join(_WORDS.get(t, t) for t in types)
        if fitting[0] == "integer":
            value = int(value)  # 3.0 is how some JSON writers say 3
    if "enum" in rule and value not in rule["enum"]:
        return value, "must be one of %s" % ", ".join(str(v) for v in rule["enum"])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        for key, broken, words in (
            ("minimum", lambda low: value < low, "at least"),
            ("exclusiveMinimum", lambda low: value <= low, "more than"),
            ("maximum", lambda high: value > high, "at most"),
            ("exclusiveMaximum", lambda high: value >= high, "less than"),
        ):
            if key in rule and broken(rule[key]):
                return value, "must be %s %s" % (words, _number(rule[key]))
    if isinstance(value, list) and isinstance(rule.get("items"), dict):
        for item in value:
            wrong = _check_value(rule["items"], item)[1]
            if wrong:
                return value, "has an item that %s" % wrong
    return value, None


def _is(kind, value):
    if kind in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (kind == "number" or float(value).is_integer())
    return isinstance(value, {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}[kind])


def _unknown(name, properties):
    problem = {"path": "params." + name, "message": "there is no parameter '%s'" % name}
    near = min(((_distance(name, known), known) for known in properties), default=(len(name), ""))
    if near[0] < len(name) // 2 + 1 and len(name) <= 100:
        problem["suggestion"] = near[1]
    return problem


def _distance(a, b):
    """Edits between two names, a swap of neighbours counting as one."""
    rows = [list(range(len(b) + 1))]
    for i, ca in enumerate(a, 1):
        row = [i]
        for j, cb in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (ca != cb))
            if i > 1 and j > 1 and ca == b[j - 2] and a[i - 2] == cb:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def _number(value):
    from decimal import Decimal  # the plain form, 0.00001 and not 1e-05; only a refusal needs it

    return format(Decimal(repr(value)), "f")
