import { Button, Group, Select } from "@mantine/core";
import { useDebouncedCallback, useMediaQuery } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Empty } from "@/ui/empty";
import { count, counted } from "@/ui/format";
import { Loaded } from "@/ui/loaded";
import { Panel } from "@/ui/panel";
import { SearchBox } from "@/ui/search-box";
import { bestRuns } from "./held-out";
import { type RunFilter, runsQuery } from "./queries";
import { RunCards } from "./run-cards";
import { isStatus, statuses } from "./run-filter";
import { RunTable } from "./run-table";
import classes from "./runs-panel.module.css";

interface RunsPanelProps {
  filter: RunFilter;
  onFilter: (filter: RunFilter) => void;
  trainers: readonly string[];
  backends: readonly { name: string; label: string }[];
}

/** The runs of the study, narrowed by the filters in the page's address. */
export function RunsPanel({ filter, onFilter, trainers, backends }: RunsPanelProps) {
  const query = useInfiniteQuery(runsQuery(filter));
  const narrowed = Boolean(filter.status || filter.trainer || filter.backend || filter.q);
  const wide = useMediaQuery("(min-width: 68em)", true, { getInitialValueInEffect: false });
  return (
    <Panel title="Runs" flush shortcut="runs">
      <div className={classes.filters}>
        <Choice
          label="Status"
          value={filter.status}
          options={statuses.map((s) => ({ value: s, label: s }))}
          onChange={(v) => onFilter({ ...filter, status: isStatus(v) ? v : undefined })}
        />
        <Choice
          label="Trainer"
          value={filter.trainer}
          options={trainers.map((t) => ({ value: t, label: t }))}
          onChange={(trainer) => onFilter({ ...filter, trainer })}
        />
        <Choice
          label="Ran on"
          value={filter.backend}
          options={backends.map((b) => ({ value: b.name, label: b.label }))}
          onChange={(backend) => onFilter({ ...filter, backend })}
        />
        <Search value={filter.q ?? ""} onSearch={(q) => onFilter({ ...filter, q: q || undefined })} />
      </div>
      <div className={classes.list} data-stale={query.isPlaceholderData}>
        <Loaded query={query} what="the runs" height={320}>
          {({ pages }) => {
            const runs = pages.flatMap((p) => p.runs);
            if (runs.length === 0) {
              return narrowed ? (
                <Empty title="No run fits these filters">
                  <Button variant="default" mt="sm" onClick={() => onFilter({ sort: filter.sort })}>
                    Show all runs
                  </Button>
                </Empty>
              ) : (
                <Empty title="No runs yet">They appear here as soon as one is started above.</Empty>
              );
            }
            const best = bestRuns(runs);
            return (
              <>
                {wide ? (
                  <RunTable
                    runs={runs}
                    best={best}
                    sort={filter.sort ?? "-created_at"}
                    onSort={(sort) => onFilter({ ...filter, sort: sort === "-created_at" ? undefined : sort })}
                  />
                ) : (
                  <RunCards runs={runs} best={best} />
                )}
                <Group justify="space-between" className={classes.foot}>
                  <span>
                    {query.hasNextPage ? `The first ${count(runs.length)} runs` : counted(runs.length, "run")}
                  </span>
                  {query.hasNextPage && (
                    <Button variant="default" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
                      Load more
                    </Button>
                  )}
                </Group>
              </>
            );
          }}
        </Loaded>
      </div>
    </Panel>
  );
}

interface ChoiceProps {
  label: string;
  value: string | undefined;
  options: { value: string; label: string }[];
  onChange: (value: string | undefined) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <Select
      aria-label={label}
      placeholder={label}
      data={options}
      value={value ?? null}
      onChange={(v) => onChange(v ?? undefined)}
      clearable
      clearButtonProps={{ "aria-label": `Any ${label.toLowerCase()}` }}
      className={classes.choice}
    />
  );
}

function Search({ value, onSearch }: { value: string; onSearch: (q: string) => void }) {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    // The address changed by other means than typing here.
    setKnown(value);
    setTyped(value);
  }
  const send = useDebouncedCallback((q: string) => {
    setKnown(q);
    onSearch(q);
  }, 250);
  const type = (q: string) => {
    setTyped(q);
    send(q);
  };
  return (
    <SearchBox
      label="Search runs"
      placeholder="Search runs ( / )"
      typed={typed}
      onType={type}
      className={classes.search}
    />
  );
}
