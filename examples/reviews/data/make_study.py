"""Make this study from the review snippets that the sdist of vaderSentiment 0.5 carries.

Usage: python make_study.py <folder of hutto_ICWSM_2014> <folder of this example>

Twenty people rated each snippet from -4 to 4. Two of them are this study's annotators: a rating above zero is
`positive`, below zero `negative`, and zero a skip. Nothing is invented, so they disagree where those people did.
"""

import ast
import hashlib
import html
import json
import pathlib
import sys

SOURCES = {"amazon": 1400, "movie": 600}
ANNOTATORS = {"ana": (1, 0, 1250), "ben": (3, 200, 1400)}  # rater's column, first item, last item


def order(key):
    return hashlib.sha256(key.encode()).hexdigest()


def snippets(folder, source):
    texts = {}
    for line in (folder / f"{source}ReviewSnippets_GroundTruth.txt").read_text("utf-8-sig", "replace").splitlines():
        key, _, text = line.split("\t", 2)
        texts[key] = html.unescape(text).strip()
    rows = []
    for line in (folder / f"{source}ReviewSnippets_anonDataRatings.txt").read_text("utf-8-sig", "replace").splitlines():
        key, mean, _, ratings = line.split("\t")
        text = texts.get(key, "")
        if 30 <= len(text) <= 280 and "\ufffd" not in text and abs(float(mean)) > 1.5:
            rows.append((f"{source}-{key.replace('_', '-')}", text, ast.literal_eval(ratings)))
    rows.sort(key=lambda row: order(row[0]))
    return rows[: SOURCES[source]]


def main(folder, study):
    rows = sorted((row for source in SOURCES for row in snippets(folder, source)), key=lambda row: order("x" + row[0]))
    items = [{"id": key, "text": text} for key, text, _ in rows]
    (study / "data" / "reviews.json").write_text(
        "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in items) + "\n]\n", "utf-8"
    )
    for name, (column, first, last) in ANNOTATORS.items():
        labels = {}
        for key, _, ratings in rows[first:last]:
            if ratings[column] != 0:
                label = "positive" if ratings[column] > 0 else "negative"
                labels[key] = [[{"schema": "sentiment", "name": label}, label]]
        state = {
            "user_id": name,
            "instance_id_ordering": [key for key, _, _ in rows[first:last]],
            "current_instance_index": last - first - 1,
            "current_phase_and_page": ["annotation", None],
            "max_assignments": -1,
            "instance_id_to_label_to_value": labels,
            "instance_id_to_span_to_value": {},
            "instance_id_to_behavioral_data": {},
            "origin": {},
        }
        out = study / "annotation_output" / name
        out.mkdir(parents=True, exist_ok=True)
        (out / "user_state.json").write_text(json.dumps(state, indent=2), "utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
