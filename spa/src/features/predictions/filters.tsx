import { Autocomplete, Select, Switch } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { Run } from "@/client/schema";
import { SearchBox } from "@/ui/search-box";
import { isSplit, type PredictionFilter, splitWords } from "./prediction-filter";
import classes from "./predictions-tab.module.css";

interface FiltersProps {
  run: Run;
  filter: PredictionFilter;
  onFilter: (filter: PredictionFilter) => void;
  /** Labels to offer; any other may be typed. */
  labels?: readonly string[];
}

/** What to see of the predictions. */
export function Filters({ run, filter, onFilter, labels = [] }: FiltersProps) {
  const change = (part: PredictionFilter) => onFilter(clean({ ...filter, ...part }));
  return (
    <div className={classes.filters}>
      {run.schema_names.length > 1 && (
        <Select
          aria-label="Scheme"
          placeholder="Scheme"
          data={run.schema_names}
          value={filter.schema ?? null}
          onChange={(schema) => change({ schema: schema ?? undefined })}
          clearable
          clearButtonProps={{ "aria-label": "Any scheme" }}
          className={classes.choice}
        />
      )}
      <Select
        aria-label="Split"
        placeholder="Split"
        data={Object.entries(splitWords).map(([value, label]) => ({ value, label }))}
        value={filter.split ?? null}
        onChange={(split) => change({ split: isSplit(split) ? split : undefined })}
        clearable
        clearButtonProps={{ "aria-label": "Any split" }}
        className={classes.choice}
      />
      <Typed
        label="Predicted label"
        options={labels}
        value={filter.label ?? ""}
        onChange={(label) => change({ label })}
      />
      {filter.target !== undefined && (
        <Typed
          label="Item's own label"
          options={labels}
          value={filter.target}
          onChange={(target) => change({ target })}
        />
      )}
      <Switch
        label="Wrong only"
        checked={filter.wrong === true}
        onChange={(e) => change({ wrong: e.currentTarget.checked })}
      />
      <Search value={filter.q ?? ""} onSearch={(q) => change({ q })} />
    </div>
  );
}

/** Leaves out what is empty, so that the address stays short. */
function clean(filter: PredictionFilter): PredictionFilter {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
}

/** A text that is sent when the typing has paused. */
function useTyped(value: string, send: (text: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const later = useDebouncedCallback(send, 300);
  return [
    typed,
    (text) => {
      setTyped(text);
      later(text);
    },
  ];
}

interface TypedProps {
  label: string;
  options: readonly string[];
  value: string;
  onChange: (text: string) => void;
}

function Typed({ label, options, value, onChange }: TypedProps) {
  const [typed, type] = useTyped(value, onChange);
  return (
    <Autocomplete
      aria-label={label}
      placeholder={label}
      data={[...options]}
      value={typed}
      onChange={type}
      clearable
      clearButtonProps={{ "aria-label": `Any ${label.toLowerCase()}` }}
      className={classes.choice}
    />
  );
}

function Search({ value, onSearch }: { value: string; onSearch: (q: string) => void }) {
  const [typed, type] = useTyped(value, onSearch);
  return (
    <SearchBox
      label="Search predictions"
      placeholder="Search text or id ( / )"
      typed={typed}
      onType={type}
      className={classes.search}
    />
  );
}
