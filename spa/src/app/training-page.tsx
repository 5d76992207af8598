import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { queueState } from "@/app/header";
import { useTitle } from "@/app/title";
import type { Backend, Status } from "@/client/schema";
import { backendsQuery } from "@/features/backends/queries";
import { RunsOn } from "@/features/backends/runs-on";
import { NowPanel } from "@/features/runs/now-panel";
import { useCreateRun } from "@/features/runs/queries";
import { readFilter, writeFilter } from "@/features/runs/run-filter";
import { RunsPanel } from "@/features/runs/runs-panel";
import { trainersQuery } from "@/features/train/queries";
import { TrainPanel } from "@/features/train/train-panel";
import type { Place } from "@/features/train/why-not";
import { Loaded } from "@/ui/loaded";

/** The front page: train, what is under way, what has been. */
export function TrainingPage({ status }: { status: Status }) {
  const [params, setParams] = useSearchParams();
  const [wanted, setWanted] = useState<string>();
  const backends = useQuery(backendsQuery);
  const trainers = useQuery(trainersQuery);
  const create = useCreateRun();
  const backend = chosenBackend(backends.data ?? [], wanted);
  useTitle(status.running.length > 0 && queueState(status), "Training", status.project_name);

  return (
    <>
      <h1 className="visually-hidden">Training</h1>
      <TrainPanel
        place={placeOf(backend)}
        runsOn={(trainer) => (
          <Loaded query={backends} what="the backends" height={60}>
            {(list) => <RunsOn backends={list} value={backend?.name} onChange={setWanted} trainer={trainer} />}
          </Loaded>
        )}
        onTrain={create.mutateAsync}
      />
      <NowPanel running={status.running} queued={status.queued} />
      <RunsPanel
        filter={readFilter(params)}
        onFilter={(filter) => setParams(writeFilter(filter), { replace: true })}
        trainers={(trainers.data ?? []).map((t) => t.name)}
        backends={backends.data ?? []}
      />
    </>
  );
}

function chosenBackend(backends: readonly Backend[], wanted: string | undefined): Backend | undefined {
  return backends.find((b) => b.name === wanted) ?? backends.find((b) => b.default) ?? backends[0];
}

function placeOf(backend: Backend | undefined): Place {
  if (!backend) {
    return { backend: undefined, local: true, reason: "" };
  }
  return {
    backend: backend.name,
    local: backend.type === "local",
    reason: backend.available ? "" : `${backend.label} cannot train now: ${backend.reason}`,
  };
}
