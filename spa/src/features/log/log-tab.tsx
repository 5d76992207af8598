import { SegmentedControl } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Empty } from "@/ui/empty";
import { Loaded } from "@/ui/loaded";
import { Panel } from "@/ui/panel";
import { SearchBox } from "@/ui/search-box";
import { DownloadLog } from "./download-log";
import { LogLines } from "./log-lines";
import { LogMatches } from "./log-matches";
import classes from "./log-tab.module.css";
import { type LogSource, tailQuery } from "./queries";

interface LogTabProps {
  runId: string;
  final: boolean;
  source: LogSource;
  /** The line the address points at. */
  line: number | undefined;
  onPlace: (source: LogSource, line?: number) => void;
  /** Only runs on other machines have an agent's log. */
  remote: boolean;
}

const names: Record<LogSource, string> = { log: "Log", stdout: "stdout", stderr: "stderr", agent: "Agent" };

/** Reads the source of a log from an address. */
export function readSource(text: string | null): LogSource {
  return text === "stdout" || text === "stderr" || text === "agent" ? text : "log";
}

/** A run's log: the sources apart, following the end while it grows. */
export function LogTab({ runId, final, source, line, onPlace, remote }: LogTabProps) {
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed, 250);
  const tail = useQuery(tailQuery(runId, source, final));
  const sources: LogSource[] = remote ? ["log", "stdout", "stderr", "agent"] : ["log", "stdout", "stderr"];
  return (
    <Panel
      title="Log"
      flush
      aside={<DownloadLog runId={runId} source={source} disabled={!tail.data || tail.data.total === 0} />}
    >
      <div className={classes.bar}>
        <SegmentedControl
          aria-label="Source"
          data={sources.map((s) => ({ value: s, label: names[s] }))}
          value={source}
          onChange={(value) => onPlace(readSource(value))}
        />
        <SearchBox
          label="Search the log"
          placeholder="Search the log ( / )"
          typed={typed}
          onType={setTyped}
          className={classes.search}
        />
      </div>
      {search !== "" ? (
        <LogMatches
          key={`${source} ${search}`}
          runId={runId}
          source={source}
          search={search}
          onOpen={(n) => {
            setTyped("");
            onPlace(source, n);
          }}
        />
      ) : (
        <Loaded query={tail} what="the log" height={480}>
          {(page) =>
            page.total === 0 ? (
              <Empty title={`${names[source]} is empty`}>
                {final ? "Nothing was written there." : "Lines appear as they are written."}
              </Empty>
            ) : (
              <LogLines
                key={source}
                runId={runId}
                source={source}
                tail={page}
                line={line}
                growing={!final}
                onLine={(n) => onPlace(source, n)}
              />
            )
          }
        </Loaded>
      )}
    </Panel>
  );
}
