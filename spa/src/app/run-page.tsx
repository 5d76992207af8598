import { Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { useSearchParams } from "wouter";
import { useRunCurves } from "@/app/run-curves";
import { useTitle } from "@/app/title";
import type { Run } from "@/client/schema";
import { FilesTab } from "@/features/artifacts/files-tab";
import { backendsQuery } from "@/features/backends/queries";
import { LogTab, readSource } from "@/features/log/log-tab";
import { lastWordsQuery } from "@/features/log/queries";
import { CurvesTab } from "@/features/metrics/curves-tab";
import { ScoresTab } from "@/features/metrics/scores-tab";
import { predictionParams, readPredictionFilter } from "@/features/predictions/prediction-filter";
import { PredictionsTab } from "@/features/predictions/predictions-tab";
import { runQuery } from "@/features/runs/queries";
import { RunDetails } from "@/features/runs/run-details";
import { RunError } from "@/features/runs/run-error";
import { RunHeader } from "@/features/runs/run-header";
import { RunOverview } from "@/features/runs/run-overview";
import { shortId } from "@/features/runs/words";
import { Loaded } from "@/ui/loaded";
import { isFinal } from "@/ui/run-status";
import classes from "./shell.module.css";

const tabs = ["overview", "curves", "scores", "predictions", "log", "files", "details"] as const;
type Tab = (typeof tabs)[number];

interface RunPageProps {
  id: string;
  study: string;
}

/** All about one run. */
export function RunPage({ id, study }: RunPageProps) {
  const query = useQuery(runQuery(id));
  useTitle(query.data?.status, shortId(id), study);
  return (
    <Loaded query={query} what={`run ${id}`} height={480}>
      {(run) => <RunView run={run} />}
    </Loaded>
  );
}

/** Scrolls the chosen tab into sight where they do not all fit. */
function useTabInSight(tab: Tab) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tab is found by its being selected
  useEffect(() => {
    document
      .querySelector('[role="tab"][aria-selected="true"]')
      ?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [tab]);
}

function RunView({ run }: { run: Run }) {
  const [params, setParams] = useSearchParams();
  const final = isFinal(run.status);
  const curves = useRunCurves(run.run_id, !final);
  const lastWords = useQuery(lastWordsQuery(run.run_id, run.status === "error"));
  const tab: Tab = tabs.find((t) => t === params.get("tab")) ?? "overview";
  useTabInSight(tab);
  const show = (next: Record<string, string>) => setParams(next, { replace: true });

  return (
    <>
      <RunHeader run={run} />
      {run.status === "error" && <RunError run={run} lastLines={lastWords.data ?? []} />}
      <Tabs value={tab} onChange={(next) => setParams({ tab: next ?? "overview" })} keepMounted={false}>
        <Tabs.List mb="md" className={classes.tabs}>
          {tabs.map((t) => (
            <Tabs.Tab key={t} value={t}>
              {t[0]?.toUpperCase() + t.slice(1)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="overview">
          <RunOverview run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="curves">
          <CurvesTab runId={run.run_id} final={final} live={curves} />
        </Tabs.Panel>
        <Tabs.Panel value="scores">
          <ScoresTab runId={run.run_id} final={final} />
        </Tabs.Panel>
        <Tabs.Panel value="predictions">
          <PredictionsTab
            run={run}
            filter={readPredictionFilter(params)}
            onFilter={(filter) => show({ tab: "predictions", ...predictionParams(filter) })}
          />
        </Tabs.Panel>
        <Tabs.Panel value="log">
          <LogTab
            runId={run.run_id}
            final={final}
            remote={run.backend !== "local"}
            source={readSource(params.get("source"))}
            line={Number(params.get("line")) || undefined}
            onPlace={(source, line) => show({ tab: "log", source, ...(line !== undefined && { line: String(line) }) })}
          />
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <RunFiles run={run} final={final} />
        </Tabs.Panel>
        <Tabs.Panel value="details">
          <RunDetails run={run} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function RunFiles({ run, final }: { run: Run; final: boolean }) {
  const backends = useQuery(backendsQuery).data ?? [];
  // The server itself can go to these; an agent's machine it cannot reach.
  const reachable = backends.some((b) => b.name === run.backend && (b.type === "ssh" || b.type === "slurm"));
  return (
    <FilesTab
      runId={run.run_id}
      final={final}
      uri={run.artifact_uri}
      step={final ? run.step : ""}
      canCopy={final && reachable}
    />
  );
}
