import { useState } from "react";
import { ApiError } from "@/client/problem";
import type { RunRequest, RunStarted, SchemeSummary, Trainer } from "@/client/schema";
import { type Field, given, problemWith, readFields } from "./params";
import { type Place, whyNot } from "./why-not";

interface TrainFormInput {
  trainers: readonly Trainer[];
  schemes: readonly SchemeSummary[];
  place: Place;
  onTrain: (request: RunRequest) => Promise<RunStarted>;
}

/** What the form holds, what follows from it, and what its last press of Train came to. */
export function useTrainForm({ trainers, schemes, place, onTrain }: TrainFormInput) {
  const [trainerName, setTrainerName] = useState(() => (trainers.find((t) => t.available) ?? trainers[0])?.name ?? "");
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [params, setParams] = useState<Record<string, unknown>>({});
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [started, setStarted] = useState<RunStarted | null>(null);
  const [refused, setRefused] = useState<unknown>(null);

  const trainer = trainers.find((t) => t.name === trainerName);
  const fields = trainer ? readFields(trainer.params) : [];
  const changes = given(fields, params);
  const own = problems(fields, (f) => problemWith(f, f.name in params ? params[f.name] : f.default));
  const theirs = problems(fields, (f) => (refused instanceof ApiError ? refused.problemAt(`params.${f.name}`) : ""));
  const selected = select(schemes, trainerName, chosen);

  const train = async () => {
    setBusy(true);
    setRefused(null);
    setStarted(null);
    try {
      setStarted(
        await onTrain({
          trainer: trainerName,
          schemas: selected,
          ...(place.backend !== undefined && { backend: place.backend }),
          ...(Object.keys(changes).length > 0 && { params: changes }),
        }),
      );
    } catch (error) {
      setRefused(error);
      if (error instanceof ApiError && error.problems.some((p) => p.path.includes("params."))) {
        setOpen(true);
      }
    } finally {
      setBusy(false);
    }
  };

  return {
    trainer,
    selected,
    fields,
    params,
    problems: { ...theirs, ...own },
    nChanged: Object.keys(changes).length,
    reason: whyNot({ trainer, schemes, place }),
    ready: selected.length > 0 && Object.keys(own).length === 0,
    open,
    busy,
    started,
    refused,
    train,
    toggleParams: () => setOpen(!open),
    chooseTrainer: (name: string) => {
      setTrainerName(name);
      setParams({});
      setRefused(null);
    },
    chooseSchemes: (names: string[]) => {
      setChosen(names);
      setRefused(null);
    },
    setParams: (values: Record<string, unknown>) => {
      setParams(values);
      setRefused(null);
    },
  };
}

/** Until the reader chooses, the first scheme that can be trained; a choice that the trainer cannot take falls out. */
function select(schemes: readonly SchemeSummary[], trainer: string, chosen: string[] | null): string[] {
  const takes = (s: SchemeSummary) => s.trainable && s.trainers.includes(trainer);
  if (chosen) {
    return chosen.filter((name) => schemes.some((s) => s.name === name && takes(s)));
  }
  const first = schemes.find(takes);
  return first ? [first.name] : [];
}

function problems(fields: readonly Field[], of: (field: Field) => string): Record<string, string> {
  return Object.fromEntries(
    fields.map((f): [string, string] => [f.name, of(f)]).filter(([, problem]) => problem !== ""),
  );
}
