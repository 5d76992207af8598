import { Button, Collapse, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { ApiError, wordsOf } from "@/client/problem";
import type { RunRequest, RunStarted, SchemeSummary, Trainer } from "@/client/schema";
import { Icon } from "@/ui/icons";
import { Loaded } from "@/ui/loaded";
import { Notice } from "@/ui/notice";
import { Panel } from "@/ui/panel";
import { Labelled } from "./labelled-line";
import { given, problemWith, readFields } from "./params";
import { ParamsForm } from "./params-form";
import { schemesQuery, trainersQuery } from "./queries";
import { SchemesSelect } from "./schemes-select";
import classes from "./train-panel.module.css";
import { type Place, whyNot } from "./why-not";

interface TrainPanelProps {
  place: Place;
  /** The "Runs on" menu with its Check, for the trainer chosen. */
  runsOn: (trainer: string) => ReactNode;
  onTrain: (request: RunRequest) => Promise<RunStarted>;
}

/** The form that starts a run. */
export function TrainPanel(props: TrainPanelProps) {
  const trainers = useQuery(trainersQuery);
  const schemes = useQuery(schemesQuery);
  const both = {
    data: trainers.data && schemes.data && { trainers: trainers.data, schemes: schemes.data },
    error: trainers.error ?? schemes.error,
    isFetching: trainers.isFetching || schemes.isFetching,
    refetch: () => Promise.all([trainers.refetch(), schemes.refetch()]),
  };
  return (
    <Panel title="Train">
      <Loaded query={both} what="the trainers and schemes" height={148}>
        {(data) => <Form {...props} {...data} />}
      </Loaded>
    </Panel>
  );
}

interface FormProps extends TrainPanelProps {
  trainers: Trainer[];
  schemes: SchemeSummary[];
}

function Form({ trainers, schemes, place, runsOn, onTrain }: FormProps) {
  const [trainerName, setTrainerName] = useState(() => (trainers.find((t) => t.available) ?? trainers[0])?.name ?? "");
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [params, setParams] = useState<Record<string, unknown>>({});
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [started, setStarted] = useState<RunStarted | null>(null);
  const [refused, setRefused] = useState<unknown>(null);

  const trainer = trainers.find((t) => t.name === trainerName);
  const takes = (s: SchemeSummary) => s.trainable && s.trainers.includes(trainerName);
  // Until the reader chooses, the first scheme that can be trained; a choice that the trainer cannot take falls out.
  const first = schemes.find(takes);
  const selected =
    chosen?.filter((name) => schemes.some((s) => s.name === name && takes(s))) ?? (first ? [first.name] : []);
  const fields = trainer ? readFields(trainer.params) : [];
  const problems = Object.fromEntries(
    fields
      .map((f): [string, string] => [
        f.name,
        problemWith(f, f.name in params ? params[f.name] : f.default) || serverSays(refused, f.name),
      ])
      .filter(([, problem]) => problem !== ""),
  );
  const wrong = fields.some((f) => problemWith(f, f.name in params ? params[f.name] : f.default) !== "");
  const reason = whyNot({ trainer, schemes, place });
  const nChanged = Object.keys(given(fields, params)).length;

  const train = async () => {
    setBusy(true);
    setRefused(null);
    setStarted(null);
    const changes = given(fields, params);
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

  return (
    <form
      className={classes.form}
      onSubmit={(e) => {
        e.preventDefault();
        void train();
      }}
    >
      <div className={classes.row}>
        <Select
          label="Trainer"
          description={trainer?.description}
          inputWrapperOrder={["label", "input", "description"]}
          data={trainers.map((t) => ({ value: t.name, label: t.name }))}
          value={trainerName}
          allowDeselect={false}
          data-shortcut="train"
          onChange={(name) => {
            setTrainerName(name ?? "");
            setParams({});
            setRefused(null);
          }}
          renderOption={({ option }) => <TrainerOption trainer={trainers.find((t) => t.name === option.value)} />}
        />
        <SchemesSelect
          schemes={schemes}
          trainer={trainerName}
          selected={selected}
          onChange={(names) => {
            setChosen(names);
            setRefused(null);
          }}
        />
        {runsOn(trainerName)}
      </div>
      <div className={classes.foot}>
        <div className={classes.labelled}>
          {selected.map((name) => (
            <Labelled key={name} scheme={schemes.find((s) => s.name === name)} named={selected.length > 1} />
          ))}
          {selected.length === 0 && reason === "" && <span>Choose at least one scheme.</span>}
        </div>
        {fields.length > 0 && (
          <Button
            variant="subtle"
            aria-expanded={open}
            aria-controls="train-params"
            leftSection={<Icon name={open ? "up" : "down"} />}
            onClick={() => setOpen(!open)}
          >
            Parameters{nChanged > 0 && ` (${nChanged} changed)`}
          </Button>
        )}
        {reason === "" && (
          <Button type="submit" loading={busy} disabled={selected.length === 0 || wrong} className={classes.train}>
            Train
          </Button>
        )}
      </div>
      <Collapse expanded={open} id="train-params" className={open ? undefined : classes.folded}>
        <div className={classes.params}>
          <ParamsForm
            key={trainerName}
            fields={fields}
            values={params}
            problems={problems}
            onChange={(values) => {
              setParams(values);
              setRefused(null);
            }}
          />
        </div>
      </Collapse>
      {reason !== "" && <Notice tone="warn" title={reason} />}
      <Outcome started={started} refused={refused} />
    </form>
  );
}

function serverSays(refused: unknown, name: string): string {
  return refused instanceof ApiError ? refused.problemAt(`params.${name}`) : "";
}

function TrainerOption({ trainer }: { trainer: Trainer | undefined }) {
  return (
    <span>
      {trainer?.name}
      {trainer && !trainer.available && <span className={classes.reason}>{trainer.unavailable_reason}</span>}
    </span>
  );
}

/** What became of the last press of Train. */
function Outcome({ started, refused }: { started: RunStarted | null; refused: unknown }) {
  if (refused !== null) {
    const { message, hint } = wordsOf(refused);
    const fields = refused instanceof ApiError ? refused.problems.map((p) => p.message) : [];
    return (
      <Notice tone="danger" alert title={message}>
        {[...fields, hint].filter(Boolean).join(" · ")}
      </Notice>
    );
  }
  if (started === null) {
    return null;
  }
  return (
    <Notice
      tone="good"
      alert
      title={
        started.started
          ? "The run has started."
          : `The run waits in the queue${started.queue ? `, number ${started.queue.position}` : ""}.`
      }
      action={
        <Button component={Link} href={`/runs/${started.run_id}`} variant="default">
          Open the run
        </Button>
      }
    />
  );
}
