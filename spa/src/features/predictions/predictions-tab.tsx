import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Run } from "@/client/schema";
import { Empty } from "@/ui/empty";
import { count, counted } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Loaded } from "@/ui/loaded";
import { Panel } from "@/ui/panel";
import { isFinal } from "@/ui/run-status";
import { Filters } from "./filters";
import type { PredictionFilter } from "./prediction-filter";
import { PredictionRows } from "./prediction-rows";
import classes from "./predictions-tab.module.css";
import { Published } from "./published";
import { pageSize, predictionsFile, predictionsQuery } from "./queries";

interface PredictionsTabProps {
  run: Run;
  filter: PredictionFilter;
  onFilter: (filter: PredictionFilter) => void;
}

/** A run's predictions, a page at a time: a million of them are as quick as fifty. */
export function PredictionsTab({ run, filter, onFilter }: PredictionsTabProps) {
  const final = isFinal(run.status);
  // The cursors of the pages behind, the page shown being the last: there is no way back but to remember it.
  const [place, setPlace] = useState({ key: "", cursors: [""] });
  const key = JSON.stringify([run.run_id, filter]);
  const cursors = place.key === key ? place.cursors : [""];
  const query = useQuery(predictionsQuery(run.run_id, final, filter, cursors.at(-1) ?? ""));
  const narrowed = Object.keys(filter).length > 0;
  const setCursors = (next: string[]) => setPlace({ key, cursors: next });

  return (
    <Panel title="Predictions" flush aside={<Published run={run} />}>
      <Filters run={run} filter={filter} onFilter={onFilter} />
      <div className={classes.list} data-stale={query.isPlaceholderData}>
        <Loaded query={query} what="the predictions" height={480}>
          {(page) => {
            if (page.predictions.length === 0) {
              return narrowed ? (
                <Empty title="No prediction fits these filters">
                  <Button variant="default" mt="sm" onClick={() => onFilter({})}>
                    Show all predictions
                  </Button>
                </Empty>
              ) : (
                <Empty title="There are no predictions">
                  {final ? "The run made none, or they were removed since." : "They appear when the run has trained."}
                </Empty>
              );
            }
            const from = (cursors.length - 1) * pageSize;
            return (
              <>
                <PredictionRows rows={page.predictions} manySchemes={run.schema_names.length > 1} />
                <div className={classes.foot}>
                  <span className={classes.place}>
                    {count(from + 1)}–{count(from + page.predictions.length)} of {counted(page.total, "prediction")}
                  </span>
                  <Button
                    variant="default"
                    disabled={cursors.length === 1}
                    onClick={() => setCursors(cursors.slice(0, -1))}
                  >
                    Previous
                  </Button>
                  <Button
                    variant="default"
                    disabled={!page.next || query.isPlaceholderData}
                    onClick={() => page.next && setCursors([...cursors, page.next])}
                  >
                    Next
                  </Button>
                  <span className={classes.files}>
                    {(["csv", "ndjson"] as const).map((format) => (
                      <Button
                        key={format}
                        component="a"
                        href={predictionsFile(run.run_id, filter, format)}
                        download
                        variant="subtle"
                        leftSection={<Icon name="download" />}
                      >
                        {format.toUpperCase()}
                        <span className="visually-hidden"> of these predictions</span>
                      </Button>
                    ))}
                  </span>
                </div>
              </>
            );
          }}
        </Loaded>
      </div>
    </Panel>
  );
}
