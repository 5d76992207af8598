"""Parameters: the server checks the same table in Go, so the two cannot come apart."""

import json
import os

import pytest
from conftest import ROOT

from potato_trainers.params import check

with open(os.path.join(ROOT, "testdata", "params.json"), encoding="utf-8") as _file:
    TABLE = [(group["schema"], case) for group in json.load(_file) for case in group["cases"]]


@pytest.mark.parametrize("schema, case", TABLE, ids=[json.dumps(case["params"])[:60] for _, case in TABLE])
def test_table(schema, case):
    values, problems = check(schema, case["params"])
    assert problems == case.get("problems", [])
    if not problems:
        assert values == case["values"]
        assert all(
            not isinstance(v, float)
            for k, v in values.items()
            if schema.get("properties", {}).get(k, {}).get("type") == "integer"
        )
